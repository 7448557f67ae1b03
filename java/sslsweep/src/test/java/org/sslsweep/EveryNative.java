package org.sslsweep;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.sslsweep.leaver.Leaver;

/** A program that calls every native many times, from several threads at once, for the JVM's checks. */
@SuppressWarnings("try")
final class EveryNative {
    private static final int THREADS = 4;
    private static final int ROUNDS = 200;

    private EveryNative() {}

    public static void main(String[] arguments) throws Exception {
        ChildJvm.requireChecks();
        ThreadHygiene.registerMBean();
        List<Callable<Void>> workers = new ArrayList<>();
        for (int number = 0; number < THREADS; number++) {
            int own = number;
            workers.add(() -> work(own));
        }
        ExecutorService pool = Executors.newFixedThreadPool(THREADS);
        for (Future<Void> worker : pool.invokeAll(workers)) {
            worker.get();
        }
        pool.shutdown();
        ThreadHygiene.unregisterMBean();
        System.out.println("tasks " + new Figures(ThreadHygiene.snapshot()).sum("tasks"));
    }

    private static Void work(int number) throws Exception {
        TaskLabel label = TaskLabel.of("every native \u00e9 \ud83d\ude00 " + number);
        for (int round = 0; round < ROUNDS; round++) {
            Natives.label("label " + round + " of " + number);
            Natives.enterRoot(label.number(), 0, 0);
            Leaver.leave(round % 3);
            Natives.checkpoint(label.number(), 0);
            long token = Natives.enterOperation(label.number(), 0, round);
            Leaver.leave(1);
            Natives.exit(token);
            Natives.exit(token);
            Natives.exit(-7);
            Natives.enter(label.number(), -1, -1);
            Natives.exitRoot();
            Natives.exitRoot();
            Leaver.leave(1);
            Natives.sweep(label.number(), 0);
            try (Guard guard = ThreadHygiene.guard(label)) {
                Leaver.leave(20);
            }
            Natives.enter(Integer.MAX_VALUE, 0, 0);
            Natives.enterRoot(Integer.MIN_VALUE, 0, 0);
            Natives.exitRoot();
            Natives.nothing();
            Natives.version();
            ThreadHygiene.queueDepth();
            ThreadHygiene.threadCleanup();
            if (Natives.pin()) {
                Natives.unpin();
            }
            Natives.unpin();
            if (round % 10 == 0) {
                ThreadHygiene.prometheus();
                new Figures(ThreadHygiene.snapshot()).findings();
                for (String json : Natives.leftovers(1000)) {
                    Figures.leftover(json);
                }
                Natives.leftovers(-1);
                Natives.leftovers(0);
            }
        }
        if (number == 0) {
            Natives.reset();
        }
        return null;
    }
}
