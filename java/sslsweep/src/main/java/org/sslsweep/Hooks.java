package org.sslsweep;

/**
 * For code that hooks a server's worker threads and TLS engines; applications use {@link ThreadHygiene}.
 *
 * <p>All act on the calling thread. The caller asks {@link ThreadHygiene#isAvailable} first: without the library, all
 * throw IllegalStateException. The policy {@link Policy#ASSERT} means {@link Policy#CLEAR} here, since a worker's hook
 * has nobody to throw at.
 */
public final class Hooks {
    private Hooks() {}

    /**
     * A worker begins a task, outside of all others: tasks that it has never left end first. Not on virtual threads.
     *
     * @param connection number of the connection that it works for, or 0
     * @return negative when it failed; the task is not guarded then
     */
    public static int beginTask(TaskLabel label, Options options, long connection) {
        Natives.ensureLoaded();
        return Natives.enterRoot(label.number(), options.packedForHooks(), connection);
    }

    /**
     * The worker's task ends, with all that were entered in it and not left.
     *
     * @return the errors that it left; negative where no task was begun on this thread
     */
    public static int endTask() {
        Natives.ensureLoaded();
        return Natives.exitRoot();
    }

    /**
     * Records what the task of this thread has left so far, and applies the policy: before somebody else empties the
     * queue. Without a task, the errors count as arrivals of {@code label}.
     *
     * @return the errors that were found; negative when it failed
     */
    public static int checkpoint(TaskLabel label, Options options) {
        Natives.ensureLoaded();
        return Natives.checkpoint(label.number(), options.packedForHooks());
    }

    /**
     * A guard for an operation that would empty the queue before it starts: a {@link #checkpoint}, then a task. A
     * virtual thread stays on its carrier until the guard is closed.
     *
     * @param connection number of the connection that it works for, or 0
     */
    public static Guard operation(TaskLabel label, Options options, long connection) {
        return Guard.enter(label, options.packedForHooks(), connection, true);
    }

    /**
     * Records and clears what is in the queue, as left by {@code label}. Outside of tasks only.
     *
     * @return the errors that were found; negative when it failed
     */
    public static int sweep(TaskLabel label, Options options) {
        Natives.ensureLoaded();
        return Natives.sweep(label.number(), options.packedForHooks());
    }

    /** Whether the calling thread is a virtual one. */
    public static boolean onVirtualThread() {
        return VirtualThreads.isCurrent();
    }
}
