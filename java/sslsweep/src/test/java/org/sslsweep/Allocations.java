package org.sslsweep;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;

/** A program that measures what guarded tasks allocate, batch by batch, until the JIT has done its work. */
@SuppressWarnings("try")
final class Allocations {
    private static final int BATCH = 20_000;
    /** The JIT's threads may have to wait for a busy machine: some seconds' worth. */
    private static int mostBatches = 2_000;
    private static final TaskLabel LABEL = TaskLabel.of("allocations");
    private static int done;

    private Allocations() {}

    private static void guards() {
        for (int task = 0; task < BATCH; task++) {
            try (Guard guard = ThreadHygiene.guard(LABEL)) {
                done++;
            }
        }
    }

    private static void runs() {
        Runnable task = () -> done++;
        for (int number = 0; number < BATCH; number++) {
            ThreadHygiene.run(LABEL, task);
        }
    }

    private static String settle(Runnable batch) {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long self = Thread.currentThread().getId();
        long bytes = Long.MAX_VALUE;
        for (int number = 0; number < mostBatches; number++) {
            long before = threads.getThreadAllocatedBytes(self);
            batch.run();
            bytes = threads.getThreadAllocatedBytes(self) - before;
            // The measurement itself may allocate some bytes; one object a task would be hundreds of thousands.
            if (bytes < BATCH / 10) {
                return "none";
            }
        }
        return bytes / BATCH + " bytes a task";
    }

    public static void main(String[] arguments) {
        if (arguments.length > 0) {
            mostBatches = Integer.parseInt(arguments[0]);
        }
        System.out.println("guards: " + settle(Allocations::guards));
        System.out.println("runs: " + settle(Allocations::runs));
    }
}
