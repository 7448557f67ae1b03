package org.sslsweep;

/**
 * The natives of {@code libsslsweep.so}; {@code src/edge/java} implements them.
 *
 * <p>All act on the calling thread: on its tasks, and on its error queue in each libcrypto of the process. None
 * throws, but where its comment says so; one that gives an object throws IllegalStateException where it fails inside.
 * Callers make sure that the library is loaded ({@link #ensureLoaded}).
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

    /**
     * The number of a label, for the life of the process. 0 stands for all labels after the first 255. Of a text, 128
     * bytes of UTF-8 are kept; null is a task without a name. Throws OutOfMemoryError.
     */
    static native int label(String text);

    /**
     * Enters a task inside the one that is entered already, if any.
     *
     * @param options as {@code Options.packed} makes them; with ASSERT it is the caller who fails
     * @param connection number of the connection that the task works for, or 0
     * @return a token for {@link #exit}, &gt; 0; or a negative answer: the task has no guard, and must not be left
     */
    static native long enter(int label, int options, long connection);

    /**
     * Leaves the task that {@link #enter} gave the token for. Tasks entered later on the thread and not left end with
     * it.
     *
     * @return the errors that it left, those of its checkpoints included; or a negative answer ({@link #UNBALANCED}:
     *     not on this thread, or left already; nothing was done)
     */
    static native int exit(long token);

    /** Enters the task of a worker, outside of all others: tasks that the worker has never left end first. */
    static native int enterRoot(int label, int options, long connection);

    /**
     * Leaves the task of {@link #enterRoot}, and all that were entered in it and not left.
     *
     * @return as {@link #exit}; {@link #UNBALANCED} where the thread's outermost task is no worker's
     */
    static native int exitRoot();

    /**
     * Records what the tasks that are entered on this thread have left so far, each under its own label, and applies
     * their policies. On a thread without a task the errors count as arrivals of {@code label}.
     *
     * @return how many errors that were; or a negative answer ({@link #UNBALANCED}: the thread is in a task that native
     *     code has entered; nothing was done)
     */
    static native int checkpoint(int label, int options);

    /**
     * For an operation that would empty the queue before it starts: {@link #checkpoint}, then {@link #enter}. Directly in a
     * worker's task ({@link #enterRoot}) nothing is entered: what the operation leaves is that task's.
     *
     * @return as {@link #enter}; 0: nothing was entered, and nothing must be left
     */
    static native long enterOperation(int label, int options, long connection);

    /**
     * Records and clears what is in the queue, as left by {@code label}, and counts no task. With OBSERVE it stays.
     *
     * @return how many errors that were; or a negative answer ({@link #UNBALANCED}: the thread is in a task; nothing
     *     was done)
     */
    static native int sweep(int label, int options);

    /**
     * Clears the thread's queue and gives its state back to every libcrypto: the cure proposed in 2016. What the tasks
     * have left that are entered on the thread, if any, is recorded; the rest is not.
     *
     * @return how many errors went without a record; or a negative answer
     */
    static native int threadCleanup();

    /** Errors in this thread's queues, all libraries together. */
    static native int depth();

    /** Keeps the calling virtual thread on its carrier; nests. False: this JVM cannot. Nothing on other threads. */
    static native boolean pin();

    /** Takes one {@link #pin} back; one too many does nothing. */
    static native void unpin();

    /** The whole snapshot, as {@code schemas/snapshot.schema.json} describes it. Throws OutOfMemoryError. */
    static native String snapshot();

    /** The snapshot in Prometheus' text format. Throws OutOfMemoryError. */
    static native String prometheus();

    /**
     * What the tasks have left, each kind as a JSON object, the most frequent first, at most so many. Throws
     * OutOfMemoryError.
     *
     * <p>Fields: {@code label}, {@code library} (its file), {@code code}, {@code reason}, {@code benign} (why it is no
     * sign of a fault, or null), {@code leftovers}, {@code arrivals}, {@code at_least}, {@code first_ms} (since 1970);
     * of the last one {@code last_ms}, {@code thread}, {@code thread_id} (the kernel's), {@code file}, {@code line},
     * {@code function}, {@code data}, {@code connection}, the last three null where there is none.
     */
    static native String[] leftovers(int most);

    /** Starts the ledger anew: all its figures are 0. What is going on counts when it ends. */
    static native void reset();

    /** Version of the library. */
    static native String version();

    /** Does nothing: what a call costs. */
    static native void nothing();
}
