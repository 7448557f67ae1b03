package org.sslsweep.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.TimeUnit;
import org.apache.tomcat.util.threads.TaskQueue;
import org.apache.tomcat.util.threads.TaskThreadFactory;
import org.junit.jupiter.api.Test;

class WorkerPoolTest {
    private static final int TASKS = 200;

    /** The pool's own count is the one to hold ours to. */
    private static void run(String label, WorkerPool pool, Runnable task) throws Exception {
        CountDownLatch begun = new CountDownLatch(TASKS);
        for (int i = 0; i < TASKS; i++) {
            pool.execute(() -> {
                begun.countDown();
                task.run();
            });
        }
        assertTrue(begun.await(1, TimeUnit.MINUTES));
        pool.shutdown();
        assertTrue(pool.awaitTermination(1, TimeUnit.MINUTES));
        assertEquals(TASKS, pool.getCompletedTaskCount());
        assertEquals(TASKS, Ledger.tasks(label + "/task"));
    }

    private static WorkerPool pool(String label) {
        ThreadFactory tomcats = new TaskThreadFactory(label + "-", true, Thread.NORM_PRIORITY);
        ThreadFactory threads = task -> {
            Thread thread = tomcats.newThread(task);
            thread.setUncaughtExceptionHandler((ended, problem) -> { });
            return thread;
        };
        return WorkerPool.start(new WorkerHooks(new ConnectorLabels(label), Phase.TASK), 2, 4, 1_000, new TaskQueue(),
                threads);
    }

    @Test
    void guardsEveryTask() throws Exception {
        run("pool", pool("pool"), () -> { });
    }

    @Test
    void guardsTasksThatThrow() throws Exception {
        run("throwing", pool("throwing"), () -> {
            throw new IllegalStateException("a task's");
        });
    }

    /** Tomcat ends threads by an exception out of the hook after a task, and calls that hook again. */
    @Test
    void guardsTasksWhoseThreadsAreRenewed() throws Exception {
        WorkerPool pool = pool("renewed");
        pool.setThreadRenewalDelay(0);
        pool.contextStopping();
        run("renewed", pool, pool::contextStopping);
        assertEquals(0, pool.getSubmittedCount());
    }
}
