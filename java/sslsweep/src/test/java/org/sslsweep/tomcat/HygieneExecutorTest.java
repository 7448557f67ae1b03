package org.sslsweep.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class HygieneExecutorTest {
    private static HygieneExecutor executor(String name) {
        HygieneExecutor executor = new HygieneExecutor();
        executor.setName(name);
        executor.setMinSpareThreads(2);
        executor.setMaxThreads(5);
        executor.setMaxQueueSize(50);
        return executor;
    }

    @Test
    void guardsTasksUnderItsName() throws Exception {
        HygieneExecutor executor = executor("named executor");
        for (int round = 1; round <= 3; round++) {
            executor.start();
            CountDownLatch done = new CountDownLatch(10);
            for (int i = 0; i < 10; i++) {
                executor.execute(done::countDown);
            }
            assertEquals("done", executor.submit(() -> "done").get(1, TimeUnit.MINUTES));
            done.await(1, TimeUnit.MINUTES);
            assertEquals(2, executor.getCorePoolSize());
            assertFalse(executor.isShutdown());
            executor.stop();
        }
        executor.destroy();
    }

    @Test
    void takesALabel() throws Exception {
        HygieneExecutor executor = executor("other executor");
        executor.setLabel("labelled");
        executor.start();
        executor.invokeAll(List.of(() -> 1, () -> 2, () -> 3));
        // Its threads end first, so that every task is counted.
        org.apache.tomcat.util.threads.ThreadPoolExecutor pool = executor.tasks();
        executor.stop();
        pool.awaitTermination(1, TimeUnit.MINUTES);
        assertEquals(3, Ledger.tasks("labelled/task"));
        assertEquals(0, Ledger.tasks("other executor/task"));
        executor.destroy();
    }

    @Test
    void isStoppedByItsServiceAlone() throws Exception {
        HygieneExecutor executor = executor("service's executor");
        assertThrows(IllegalStateException.class, executor::isShutdown);
        assertThrows(IllegalStateException.class, () -> executor.submit(() -> "never"));
        executor.start();
        executor.shutdown();
        assertEquals(List.of(), executor.shutdownNow());
        assertFalse(executor.isShutdown());
        assertEquals("done", executor.submit(() -> "done").get(1, TimeUnit.MINUTES));
        executor.stop();
        executor.destroy();
    }
}
