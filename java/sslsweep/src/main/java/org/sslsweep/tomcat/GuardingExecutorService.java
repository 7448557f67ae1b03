package org.sslsweep.tomcat;

import java.util.List;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.apache.tomcat.util.threads.ResizableExecutor;
import org.sslsweep.TaskHooks;

/**
 * Guards the tasks that a connector hands to an executor which is not its own. Cannot be shut down: the executor is
 * others' too.
 */
final class GuardingExecutorService extends AbstractExecutorService implements Guarding, ResizableExecutor {
    /** What Tomcat shows of an executor that does not tell. */
    private static final int UNKNOWN = -1;

    private final Executor executor;
    private final WorkerHooks hooks;

    GuardingExecutorService(Executor executor, WorkerHooks hooks) {
        this.executor = executor;
        this.hooks = hooks;
    }

    @Override
    public void execute(Runnable task) {
        executor.execute(new Guarded(task, hooks));
    }

    private static final class Guarded implements Runnable {
        private final Runnable task;
        private final WorkerHooks hooks;

        Guarded(Runnable task, WorkerHooks hooks) {
            this.task = task;
            this.hooks = hooks;
        }

        @Override
        public void run() {
            // An executor of another's may run tasks on virtual threads, whose queue is their carrier's.
            if (TaskHooks.onVirtualThread()) {
                task.run();
                return;
            }
            // Not as a worker's task, which is outside of all others: the executor may run it in the caller, whose task
            // and guards go on afterwards.
            long token = TaskHooks.enter(hooks.label(task));
            try {
                task.run();
            } finally {
                TaskHooks.exit(token);
            }
        }
    }

    // Tomcat's pools and Java's have no type in common that tells these figures.

    @Override
    public int getPoolSize() {
        return executor instanceof ResizableExecutor ? ((ResizableExecutor) executor).getPoolSize()
                : Reflection.number(executor, "getPoolSize", UNKNOWN);
    }

    @Override
    public int getMaxThreads() {
        return executor instanceof ResizableExecutor ? ((ResizableExecutor) executor).getMaxThreads()
                : Reflection.number(executor, "getMaximumPoolSize", UNKNOWN);
    }

    @Override
    public int getActiveCount() {
        return executor instanceof ResizableExecutor ? ((ResizableExecutor) executor).getActiveCount()
                : Reflection.number(executor, "getActiveCount", UNKNOWN);
    }

    @Override
    public boolean resizePool(int spare, int most) {
        return executor instanceof ResizableExecutor && ((ResizableExecutor) executor).resizePool(spare, most);
    }

    @Override
    public boolean resizeQueue(int capacity) {
        return executor instanceof ResizableExecutor && ((ResizableExecutor) executor).resizeQueue(capacity);
    }

    @Override
    public void shutdown() {
        // Not ours to stop.
    }

    @Override
    public List<Runnable> shutdownNow() {
        return List.of();
    }

    /** Java 19 and later would wait for an end that does not come. */
    public void close() {}

    @Override
    public boolean isShutdown() {
        return false;
    }

    @Override
    public boolean isTerminated() {
        return false;
    }

    /** Does not wait: the executor goes on. */
    @Override
    public boolean awaitTermination(long timeout, TimeUnit unit) {
        return false;
    }
}
