package org.sslsweep.tomcat;

import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import org.apache.catalina.core.StandardThreadExecutor;
import org.apache.tomcat.util.threads.ThreadPoolExecutor;

/**
 * Guards the tasks that a connector hands to an executor of Tomcat's kinds which is not its own. To Tomcat it is a
 * {@link StandardThreadExecutor}: of others it does not renew the threads when an application is stopped. It has no
 * life of its own, and hands everything on that a connector may ask.
 */
final class GuardingStandardExecutor extends StandardExecutorService implements Guarding {
    private final Executor guarded;
    private final GuardingExecutorService tasks;

    private GuardingStandardExecutor(Executor guarded, WorkerHooks hooks) {
        this.guarded = guarded;
        tasks = new GuardingExecutorService(guarded, hooks);
    }

    /** Guards the tasks of this executor, whose kind Tomcat goes on to know. */
    static Executor around(Executor executor, WorkerHooks hooks) {
        return executor instanceof StandardThreadExecutor || executor instanceof ThreadPoolExecutor
                ? new GuardingStandardExecutor(executor, hooks) : new GuardingExecutorService(executor, hooks);
    }

    @Override
    ExecutorService tasks() {
        return tasks;
    }

    @Override
    public void execute(Runnable task) {
        tasks.execute(task);
    }

    @Override
    public void contextStopping() {
        if (guarded instanceof StandardThreadExecutor) {
            ((StandardThreadExecutor) guarded).contextStopping();
        } else {
            ((ThreadPoolExecutor) guarded).contextStopping();
        }
    }

    /** What Tomcat calls the executor of a connector: its own name, or the word for one that has none. */
    @Override
    public String getName() {
        return guarded instanceof StandardThreadExecutor ? ((StandardThreadExecutor) guarded).getName() : "Internal";
    }

    @Override
    public int getActiveCount() {
        return tasks.getActiveCount();
    }

    @Override
    public int getPoolSize() {
        return tasks.getPoolSize();
    }

    @Override
    public int getMaxThreads() {
        return tasks.getMaxThreads();
    }

    @Override
    public boolean resizePool(int spare, int most) {
        return tasks.resizePool(spare, most);
    }

    @Override
    public boolean resizeQueue(int capacity) {
        return tasks.resizeQueue(capacity);
    }
}
