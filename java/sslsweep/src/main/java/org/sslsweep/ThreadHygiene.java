package org.sslsweep;

import java.util.concurrent.Callable;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.ScheduledExecutorService;

/**
 * Keeps threads clean of what tasks leave in OpenSSL's per-thread error queue, and says who left it.
 *
 * <pre>{@code
 * private static final TaskLabel IMPORT = TaskLabel.of("import keys");
 *
 * try (Guard guard = ThreadHygiene.guard(IMPORT)) {
 *     // calls that end in OpenSSL, by whatever native library
 * }
 * }</pre>
 *
 * <p>A guard belongs to its thread; guards nest. The outermost one of a thread clears what its task left, inner ones
 * take back only what came since they were entered.
 *
 * <p><b>Virtual threads.</b> An error queue belongs to the carrier thread. So a guard on a virtual thread keeps it on
 * its carrier until the guard is closed: if the task blocks meanwhile, the carrier blocks with it. Keep such guards
 * around calls into native code, not around waiting. With {@code -Dorg.sslsweep.pin=false}, or on a JVM that cannot,
 * the thread is not kept; the queue is then looked at, and cleared, where the guard is made and where it is closed, and
 * what is found counts as arrivals of its label: it may be another task's, so that nobody is blamed for it.
 *
 * <p>Where the native library could not be loaded, all methods but {@link #isAvailable},
 * {@link #unavailableReason} and those that set or tell policy and release throw IllegalStateException with the cause.
 * All may be called from any thread.
 */
public final class ThreadHygiene {
    private ThreadHygiene() {}

    /** Whether the native library is loaded. */
    public static boolean isAvailable() {
        return Natives.isLoaded();
    }

    /** Why the native library is not loaded, and what to do; null where it is. */
    public static String unavailableReason() {
        Throwable error = Natives.loadError();
        if (error == null) {
            return null;
        }
        return error.getMessage() != null ? error.getMessage() : error.toString();
    }

    /** As {@link #guard(TaskLabel)}. Looks the label up each time, in some nanoseconds. */
    public static Guard guard(String label) {
        return guard(TaskLabel.of(label));
    }

    /** Enters a task on the calling thread, with the process's policy and release. Close what it returns. */
    public static Guard guard(TaskLabel label) {
        return guard(label, Options.INHERITED);
    }

    /** Enters a task on the calling thread. Close what it returns. */
    public static Guard guard(TaskLabel label, Options options) {
        return Guard.enter(label, options.packed(), 0);
    }

    /**
     * Enters a task on the calling thread. Close what it returns.
     *
     * @param connection number of the connection that the task works for, which reports name; 0: none
     */
    public static Guard guard(TaskLabel label, Options options, long connection) {
        return Guard.enter(label, options.packed(), connection);
    }

    /** As {@link #run(TaskLabel, Runnable)}. */
    public static void run(String label, Runnable task) {
        run(TaskLabel.of(label), task);
    }

    /**
     * Runs a task inside a guard.
     *
     * @throws DirtyTaskException by the policy {@link Policy#ASSERT}; suppressed, where the task itself throws
     */
    @SuppressWarnings("try")
    public static void run(TaskLabel label, Runnable task) {
        try (Guard guard = guard(label)) {
            task.run();
        }
    }

    /** As {@link #call(TaskLabel, Callable)}. */
    public static <T> T call(String label, Callable<T> task) throws Exception {
        return call(TaskLabel.of(label), task);
    }

    /**
     * Calls a task inside a guard.
     *
     * @throws DirtyTaskException by the policy {@link Policy#ASSERT}; suppressed, where the task itself throws
     * @throws Exception what the task throws
     */
    @SuppressWarnings("try")
    public static <T> T call(TaskLabel label, Callable<T> task) throws Exception {
        try (Guard guard = guard(label)) {
            return task.call();
        }
    }

    /** A task that runs inside a guard of its own each time. */
    public static Runnable wrap(String label, Runnable task) {
        return wrap(TaskLabel.of(label), task);
    }

    /** A task that runs inside a guard of its own each time. */
    public static Runnable wrap(TaskLabel label, Runnable task) {
        Natives.ensureLoaded();
        return new GuardedRunnable(label, task);
    }

    /** A task that is called inside a guard of its own each time. */
    public static <T> Callable<T> wrap(String label, Callable<T> task) {
        return wrap(TaskLabel.of(label), task);
    }

    /** A task that is called inside a guard of its own each time. */
    public static <T> Callable<T> wrap(TaskLabel label, Callable<T> task) {
        Natives.ensureLoaded();
        return new GuardedCallable<>(label, task);
    }

    /** An executor that hands every task on inside a guard. */
    public static Executor wrap(String label, Executor executor) {
        return wrap(TaskLabel.of(label), executor);
    }

    /** An executor that hands every task on inside a guard. */
    public static Executor wrap(TaskLabel label, Executor executor) {
        Natives.ensureLoaded();
        return new GuardedExecutor(label, executor);
    }

    /** An executor that hands every task on inside a guard. Shutting it down shuts the other down. */
    public static ExecutorService wrap(String label, ExecutorService executor) {
        return wrap(TaskLabel.of(label), executor);
    }

    /** An executor that hands every task on inside a guard. Shutting it down shuts the other down. */
    public static ExecutorService wrap(TaskLabel label, ExecutorService executor) {
        Natives.ensureLoaded();
        return new GuardedExecutorService(label, executor);
    }

    /** An executor that hands every task on inside a guard. Shutting it down shuts the other down. */
    public static ScheduledExecutorService wrap(String label, ScheduledExecutorService executor) {
        return wrap(TaskLabel.of(label), executor);
    }

    /** An executor that hands every task on inside a guard. Shutting it down shuts the other down. */
    public static ScheduledExecutorService wrap(TaskLabel label, ScheduledExecutorService executor) {
        Natives.ensureLoaded();
        return new GuardedScheduledExecutorService(label, executor);
    }

    /**
     * Clears the calling thread's error queues and gives its state back to every libcrypto, without a record: the cure
     * that was proposed in 2016. Costs microseconds on OpenSSL 1.1.0 and later, where guards do not need it.
     */
    public static void threadCleanup() {
        Natives.ensureLoaded();
        if (Natives.threadCleanup() < 0) {
            throw new IllegalStateException("sslsweep failed inside; please report it");
        }
    }

    /** Errors in the calling thread's queues, of all libraries together. */
    public static int queueDepth() {
        Natives.ensureLoaded();
        return Natives.depth();
    }

    /** What there is to know, as JSON ({@code schemas/snapshot.schema.json}). Takes about a millisecond. */
    public static String snapshot() {
        Natives.ensureLoaded();
        return Natives.snapshot();
    }

    /** The figures in Prometheus' text format, version 0.0.4. Takes about a millisecond. */
    public static String prometheus() {
        Natives.ensureLoaded();
        return Natives.prometheus();
    }

    /** Forgets what was recorded, for the whole process. */
    public static void reset() {
        Natives.ensureLoaded();
        Natives.reset();
    }

    /**
     * Registers the {@link HygieneMXBean} as {@code org.sslsweep:type=Hygiene} with the platform's MBean server, unless
     * it is there: several users share it.
     *
     * @throws IllegalStateException when something else has that name
     */
    public static void registerMBean() {
        Natives.ensureLoaded();
        Hygiene.register();
    }

    /** Takes one {@link #registerMBean} back; the last one takes the MBean away. More than that do nothing. */
    public static void unregisterMBean() {
        Hygiene.unregister();
    }

    /** The policy of tasks that have none of their own: {@link Policy#CLEAR}, until it is set. */
    public static Policy policy() {
        return Options.INHERITED.policy();
    }

    /** Sets the policy of tasks that begin from now on and have none of their own, Tomcat's too. */
    public static void setPolicy(Policy policy) {
        Options.setProcessWide(policy);
    }

    /** The release of tasks that have none of their own: {@link Release#DEFAULT}, until it is set. */
    public static Release release() {
        return Options.INHERITED.release();
    }

    /** Sets the release of tasks that begin from now on and have none of their own, Tomcat's too. */
    public static void setRelease(Release release) {
        Options.setProcessWide(release);
    }
}
