package org.sslsweep.tomcat;

import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import org.apache.tomcat.util.threads.StopPooledThreadException;
import org.apache.tomcat.util.threads.TaskQueue;
import org.apache.tomcat.util.threads.ThreadPoolExecutor;

/** Tomcat's own thread pool, with each task guarded. */
final class WorkerPool extends ThreadPoolExecutor implements Guarding {
    private final WorkerHooks hooks;

    private WorkerPool(WorkerHooks hooks, int spare, int most, long idleMillis, TaskQueue queue,
            ThreadFactory threads) {
        super(spare, most, idleMillis, TimeUnit.MILLISECONDS, queue, threads);
        this.hooks = hooks;
    }

    /** @param idleMillis how long threads beyond {@code spare} wait for a task before they end */
    static WorkerPool start(WorkerHooks hooks, int spare, int most, long idleMillis, TaskQueue queue,
            ThreadFactory threads) {
        WorkerPool pool = new WorkerPool(hooks, spare, most, idleMillis, queue, threads);
        queue.setParent(pool);
        return pool;
    }

    @Override
    protected void beforeExecute(Thread thread, Runnable task) {
        hooks.before(task);
        super.beforeExecute(thread, task);
    }

    @Override
    protected void afterExecute(Runnable task, Throwable problem) {
        // Tomcat's afterExecute throws this one to end the thread, and is called again with it, after the same task.
        if (!(problem instanceof StopPooledThreadException)) {
            hooks.after();
        }
        super.afterExecute(task, problem);
    }
}
