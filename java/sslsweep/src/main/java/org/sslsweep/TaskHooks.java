package org.sslsweep;

import java.util.List;

/**
 * For sslsweep's own integrations with servers (worker pools, TLS engines); applications use {@link ThreadHygiene}.
 *
 * <p>Static, on numbers: nothing is allocated on the way of a task. All act on the calling thread and throw nothing,
 * but need the library: ask {@link ThreadHygiene#isAvailable} before the first call. Tasks get the process's policy and
 * release of the moment; {@link Policy#ASSERT} means {@link Policy#CLEAR} here, since a hook has nobody to throw at.
 */
public final class TaskHooks {
    /** Instead of a token, on a virtual thread that is not kept on its carrier: both ends are checkpoints. */
    private static final long CHECKPOINTS = Long.MIN_VALUE;

    private TaskHooks() {}

    /** The number of a label, for the life of the process. Not for the path of a task. */
    public static int label(String text) {
        return TaskLabel.of(text).number();
    }

    /** A worker's task begins, outside of all others: tasks it has never left end first. Not on virtual threads. */
    public static void enterRoot(int label) {
        Natives.enterRoot(label, Options.INHERITED.packedForHooks(), 0);
    }

    /** The worker's task ends, with all that were entered in it and not left. */
    public static void exitRoot() {
        Natives.exitRoot();
    }

    /**
     * A task begins, inside those that the thread is in, if any. Not on virtual threads.
     *
     * @return a token for {@link #exit}, which must follow on this thread
     */
    public static long enter(int label) {
        return Natives.enter(label, Options.INHERITED.packedForHooks(), 0);
    }

    /** Leaves the task that {@link #enter} gave the token for, with all that were entered in it and not left. */
    public static void exit(long token) {
        // A negative answer entered nothing.
        if (token > 0) {
            Natives.exit(token);
        }
    }

    /**
     * Enters an operation that would empty the error queue before it starts: what the tasks around it have left so far
     * is recorded first. Directly in a worker's task, what the operation leaves is that task's. A virtual thread stays on
     * its carrier until the operation is left.
     *
     * @return a token for {@link #exitOperation}, which must follow on this thread
     */
    public static long enterOperation(int label) {
        int options = Options.INHERITED.packedForHooks();
        if (VirtualThreads.isCurrent() && !VirtualThreads.pin()) {
            Natives.checkpoint(label, options);
            return CHECKPOINTS;
        }
        return Natives.enterOperation(label, options, 0);
    }

    /** Leaves the operation that {@link #enterOperation} gave the token for. */
    public static void exitOperation(int label, long token) {
        if (token == CHECKPOINTS) {
            Natives.checkpoint(label, Options.INHERITED.packedForHooks());
            return;
        }
        // Other answers entered nothing, but a virtual thread was kept on its carrier before they came.
        if (token > 0) {
            Natives.exit(token);
        }
        if (VirtualThreads.isCurrent()) {
            Natives.unpin();
        }
    }

    /**
     * Records what the tasks of this thread have left so far, and applies their policies: before somebody else empties
     * the queue. Without a task, the errors count as arrivals of {@code label}.
     */
    public static void checkpoint(int label) {
        Natives.checkpoint(label, Options.INHERITED.packedForHooks());
    }

    /** Records and clears what is in the queue, as left by {@code label}. Outside of tasks only. */
    public static void sweep(int label) {
        Natives.sweep(label, Options.INHERITED.packedForHooks());
    }

    /** One line for the log: version, every libcrypto that is swept, and what cannot be. Takes about a millisecond. */
    public static String describe() {
        Figures figures = new Figures(Natives.snapshot());
        List<String> libraries = figures.libraries();
        List<String> blind = figures.blindSpots();
        return "sslsweep " + Natives.version() + " sweeps "
                + (libraries.isEmpty() ? "nothing yet: no libcrypto is loaded" : String.join(", ", libraries))
                + (blind.isEmpty() ? "" : "; cannot sweep: " + String.join("; ", blind));
    }

    /** Whether the calling thread is a virtual one. */
    public static boolean onVirtualThread() {
        return VirtualThreads.isCurrent();
    }
}
