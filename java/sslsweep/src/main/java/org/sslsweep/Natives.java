package org.sslsweep;

/**
 * The natives of {@code libsslsweep.so}; {@code src/edge/java} implements them.
 *
 * <p>All act on the calling thread: on its tasks, and on its error queue in each libcrypto of the process. None
 * throws, but where its comment says so. Callers make sure that the library is loaded ({@link #ensureLoaded}).
 */
final class Natives {
    /** Answers that are no success; the same numbers as in {@code include/sslsweep.h}. */
    static final int INTERNAL = -1;
    static final int UNBALANCED = -2;
    static final int TOO_DEEP = -3;
    static final int THREAD_ENDING = -4;

    private static final Throwable LOAD_ERROR = NativeLoader.tryLoad();

    private Natives() {}

    static boolean isLoaded() {
        return LOAD_ERROR == null;
    }

    /** What kept the library from being loaded, or null. */
    static Throwable loadError() {
        return LOAD_ERROR;
    }

    /** Throws, each time, what kept the library from being loaded. */
    static void ensureLoaded() {
        if (LOAD_ERROR != null) {
            throw new IllegalStateException(LOAD_ERROR.getMessage(), LOAD_ERROR);
        }
    }

    /** The number of a label, for the life of the process. 0 stands for all labels after the first 255. */
    static native int label(String text);

    /**
     * Enters a task inside the one that is entered already, if any.
     *
     * @param options see {@link Options}
     * @param connection number of the connection that the task works for, or 0
     * @return a token for {@link #exit}, &gt; 0; or a negative answer: the task has no guard, and must not be left
     */
    static native long enter(int label, int options, long connection);

    /**
     * Leaves the task that {@link #enter} gave the token for. Tasks entered later on the thread and not left end with
     * it.
     *
     * @return the errors that it left; or a negative answer ({@link #UNBALANCED}: not on this thread, or left already)
     */
    static native int exit(long token);

    /** Enters the task of a worker, outside of all others: tasks that the worker has never left end first. */
    static native int enterRoot(int label, int options, long connection);

    /** Leaves the task of {@link #enterRoot}, and all that were entered in it and not left. */
    static native int exitRoot();

    /**
     * Records what the task that is entered on this thread has left so far, and applies its policy. On a thread
     * without a task the errors count as arrivals of {@code label}.
     */
    static native int checkpoint(int label, int options);

    /** {@link #checkpoint}, then {@link #enter}: for an operation that would empty the queue before it starts. */
    static native long enterAfterCheckpoint(int label, int options, long connection);

    /** Records and clears what is in the queue, as left by {@code label}; outside of tasks only. */
    static native int sweep(int label, int options);

    /** Clears the thread's queue and gives its state back to every libcrypto: the cure proposed in 2016. */
    static native int threadCleanup();

    /** Errors in this thread's queues, all libraries together. */
    static native int depth();

    /** Keeps the calling virtual thread on its carrier. False: this JVM cannot. */
    static native boolean pin();

    /** Takes one {@link #pin} back. */
    static native void unpin();

    /** The whole snapshot, as {@code schemas/snapshot.schema.json} describes it. Throws OutOfMemoryError. */
    static native String snapshot();

    /** The snapshot in Prometheus' text format. Throws OutOfMemoryError. */
    static native String prometheus();

    /** What the tasks have left, as JSON, the most frequent first, at most so many. Throws OutOfMemoryError. */
    static native String[] leftovers(int most);

    /** Starts the ledger anew. */
    static native void reset();

    /** Version of the library. */
    static native String version();

    /** Does nothing: what a call costs. */
    static native void nothing();
}
