package org.sslsweep;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.sslsweep.leaver.Leaver;

/**
 * A program with many virtual threads, whose tasks leave errors and wait before they end. Prints what the ledger says.
 *
 * <p>Compiled for Java 11, so that it starts them by reflection.
 */
@SuppressWarnings("try")
final class VirtualTasks {
    static final int LABELS = 250;
    static final int TASKS = 1000;

    private static final AtomicInteger MOVED_INSIDE = new AtomicInteger();
    private static final AtomicInteger MOVED_AFTER = new AtomicInteger();
    private static final AtomicInteger MOVED_AFTER_MISUSE = new AtomicInteger();
    private static final AtomicInteger FAILED = new AtomicInteger();

    private VirtualTasks() {}

    static Thread start(Runnable task) throws ReflectiveOperationException {
        return (Thread) Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, task);
    }

    /** Errors that each task of a label leaves: not the same everywhere, so that a mix-up shows. */
    static int errors(int label) {
        return 1 + label % 3;
    }

    static String label(int number) {
        return "virtual " + number;
    }

    /** The carrier of the calling virtual thread, as its text tells. */
    private static String carrier() {
        String text = Thread.currentThread().toString();
        return text.substring(text.lastIndexOf('@'));
    }

    private static void rest() {
        try {
            Thread.sleep(1);
            Thread.yield();
        } catch (InterruptedException nobody) {
            throw new AssertionError(nobody);
        }
    }

    private static boolean movesInARest() {
        String before = carrier();
        rest();
        return !carrier().equals(before);
    }

    private static void task(int number) {
        int label = number % LABELS;
        try {
            ThreadHygiene.call(label(label), () -> {
                Leaver.leave(errors(label));
                if (movesInARest()) {
                    MOVED_INSIDE.incrementAndGet();
                }
                return null;
            });
        } catch (Exception problem) {
            problem.printStackTrace();
            FAILED.incrementAndGet();
        }
        if (movesInARest()) {
            MOVED_AFTER.incrementAndGet();
        }
    }

    /** Closes guards in the wrong order: they must not keep the thread on its carrier for good. */
    private static void misuse() {
        Guard outer = ThreadHygiene.guard("virtual: outer");
        Guard inner = ThreadHygiene.guard("virtual: inner");
        outer.close();
        try {
            inner.close();
            FAILED.incrementAndGet();
        } catch (IllegalStateException expected) {
            if (movesInARest()) {
                MOVED_AFTER_MISUSE.incrementAndGet();
            }
        }
    }

    private static void closeElsewhere() throws Exception {
        Guard[] made = new Guard[1];
        Object turn = new Object();
        Thread owner = start(() -> {
            Guard guard = ThreadHygiene.guard("virtual: elsewhere");
            Leaver.leave(1);
            synchronized (turn) {
                made[0] = guard;
                turn.notifyAll();
                while (made[0] != null) {
                    try {
                        turn.wait();
                    } catch (InterruptedException nobody) {
                        throw new AssertionError(nobody);
                    }
                }
            }
            guard.close();
        });
        synchronized (turn) {
            while (made[0] == null) {
                turn.wait();
            }
        }
        Thread other = start(() -> {
            try {
                made[0].close();
                FAILED.incrementAndGet();
            } catch (IllegalStateException expected) {
                // Said on this thread.
            }
        });
        other.join();
        synchronized (turn) {
            made[0] = null;
            turn.notifyAll();
        }
        owner.join();
    }

    public static void main(String[] arguments) throws Exception {
        ChildJvm.requireChecks();
        // So that the first task finds libcrypto, whatever carrier it is on.
        Leaver.drain();
        ThreadHygiene.run("virtual: first", () -> { });
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < TASKS; number++) {
            int own = number;
            threads.add(start(() -> task(own)));
        }
        for (int number = 0; number < 100; number++) {
            threads.add(start(VirtualTasks::misuse));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        closeElsewhere();
        long tasks = 0;
        long dirty = 0;
        long leftovers = 0;
        long arrivals = 0;
        int exact = 0;
        for (TaskEntry entry : new Figures(ThreadHygiene.snapshot()).tasks()) {
            if (entry.getLabel().matches("virtual \\d+")) {
                long each = errors(Integer.parseInt(entry.getLabel().substring("virtual ".length())));
                long own = TASKS / LABELS;
                exact += entry.getTasks() == own && entry.getDirtyTasks() == own
                        && entry.getLeftovers() == own * each && entry.getArrivals() == 0 ? 1 : 0;
                tasks += entry.getTasks();
                dirty += entry.getDirtyTasks();
                leftovers += entry.getLeftovers();
                arrivals += entry.getArrivals();
            }
        }
        System.out.println("tasks=" + tasks + " dirty=" + dirty + " leftovers=" + leftovers + " arrivals=" + arrivals
                + " exact=" + exact + " moved-inside=" + MOVED_INSIDE + " moved-after=" + MOVED_AFTER
                + " moved-after-misuse=" + MOVED_AFTER_MISUSE + " failed=" + FAILED
                + " elsewhere=" + Ledger.leftovers("virtual: elsewhere"));
    }
}
