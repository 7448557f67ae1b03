package org.sslsweep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.sslsweep.leaver.Leaver;

/** Tasks and executors with guards around them. */
@SuppressWarnings("try") // As in GuardTest.
class WrapTest {
    private final ExecutorService one = Executors.newSingleThreadExecutor();

    @BeforeAll
    static void loadLibcrypto() {
        Leaver.drain();
    }

    @AfterEach
    void end() throws InterruptedException {
        ThreadHygiene.setPolicy(Policy.CLEAR);
        one.shutdownNow();
        assertTrue(one.awaitTermination(1, TimeUnit.MINUTES));
    }

    private static Integer leaveOne() {
        Leaver.leave(1);
        return ThreadHygiene.queueDepth();
    }

    @Test
    void tasksAreGuardedEachTime() throws Exception {
        Runnable runnable = ThreadHygiene.wrap("wrap: runnable", () -> Leaver.leave(1));
        runnable.run();
        runnable.run();
        Callable<Integer> callable = ThreadHygiene.wrap("wrap: callable", WrapTest::leaveOne);
        assertEquals(1, callable.call());
        assertEquals(1, callable.call());
        assertEquals(2, Ledger.leftovers("wrap: runnable"));
        assertEquals(2, Ledger.leftovers("wrap: callable"));
        assertEquals(0, ThreadHygiene.queueDepth());
        assertTrue(runnable.toString().endsWith(" guarded as \"wrap: runnable\""), runnable.toString());
        assertThrows(NullPointerException.class, () -> ThreadHygiene.wrap("wrap: none", (Runnable) null));
    }

    @Test
    void anExecutorsTasksAreGuardedOnTheirThreads() throws Exception {
        Executor executor = ThreadHygiene.wrap("wrap: executor", (Executor) one);
        CountDownLatch done = new CountDownLatch(1);
        executor.execute(() -> Leaver.leave(2));
        executor.execute(done::countDown);
        assertTrue(done.await(1, TimeUnit.MINUTES));
        assertEquals(0, one.submit(ThreadHygiene::queueDepth).get());
        assertEquals(2, Ledger.leftovers("wrap: executor"));
    }

    @Test
    void anExecutorThatRunsInTheCallerKeepsTheCallersTask() {
        Executor direct = ThreadHygiene.wrap("wrap: direct", (Executor) Runnable::run);
        try (Guard guard = ThreadHygiene.guard("wrap: caller")) {
            Leaver.leave(1);
            direct.execute(() -> Leaver.leave(2));
            assertEquals(1, ThreadHygiene.queueDepth());
        }
        assertEquals(1, Ledger.leftovers("wrap: caller"));
        assertEquals(2, Ledger.leftovers("wrap: direct"));
    }

    @Test
    void allWaysIntoAnExecutorServiceAreGuarded() throws Exception {
        ExecutorService service = ThreadHygiene.wrap("wrap: service", one);
        assertEquals(1, service.submit(WrapTest::leaveOne).get());
        service.submit(() -> Leaver.leave(1)).get();
        assertEquals("result", service.submit(() -> Leaver.leave(1), "result").get());
        List<Callable<Integer>> two = List.of(WrapTest::leaveOne, WrapTest::leaveOne);
        for (Future<Integer> future : service.invokeAll(two)) {
            assertEquals(1, future.get());
        }
        for (Future<Integer> future : service.invokeAll(two, 1, TimeUnit.MINUTES)) {
            assertEquals(1, future.get());
        }
        List<Callable<Integer>> single = List.of(WrapTest::leaveOne);
        assertEquals(1, service.invokeAny(single));
        assertEquals(1, service.invokeAny(single, 1, TimeUnit.MINUTES));
        service.execute(() -> Leaver.leave(1));
        assertEquals(0, one.submit(ThreadHygiene::queueDepth).get());
        assertEquals(10, Ledger.leftovers("wrap: service"));
        service.shutdown();
        assertTrue(service.isShutdown() && service.awaitTermination(1, TimeUnit.MINUTES) && service.isTerminated());
        assertEquals(List.of(), service.shutdownNow());
    }

    @Test
    void aDirtyTaskFailsItsFutureByAssert() {
        ThreadHygiene.setPolicy(Policy.ASSERT);
        Future<Integer> future = ThreadHygiene.wrap("wrap: assert", one).submit(WrapTest::leaveOne);
        Throwable cause = assertThrows(ExecutionException.class, future::get).getCause();
        assertEquals(DirtyTaskException.class, cause.getClass());
    }

    @Test
    void repeatedTasksAreGuardedEachTime() throws Exception {
        ScheduledExecutorService plain = Executors.newSingleThreadScheduledExecutor();
        try {
            ScheduledExecutorService service = ThreadHygiene.wrap("wrap: scheduled", plain);
            assertEquals(1, service.schedule(WrapTest::leaveOne, 0, TimeUnit.SECONDS).get());
            service.schedule(() -> Leaver.leave(1), 0, TimeUnit.SECONDS).get();
            CountDownLatch six = new CountDownLatch(6);
            Runnable dirty = () -> {
                assertEquals(1, leaveOne());
                six.countDown();
            };
            ScheduledFuture<?> rate = service.scheduleAtFixedRate(dirty, 0, 1, TimeUnit.MILLISECONDS);
            ScheduledFuture<?> delay = service.scheduleWithFixedDelay(dirty, 0, 1, TimeUnit.MILLISECONDS);
            assertTrue(six.await(1, TimeUnit.MINUTES));
            rate.cancel(false);
            delay.cancel(false);
            assertEquals(0, plain.submit(ThreadHygiene::queueDepth).get());
            assertTrue(Ledger.leftovers("wrap: scheduled") >= 8);
        } finally {
            plain.shutdownNow();
        }
    }
}
