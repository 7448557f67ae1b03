package org.sslsweep.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.channels.AsynchronousChannelGroup;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.StreamSupport;
import org.apache.catalina.Context;
import org.apache.catalina.Lifecycle;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.core.StandardThreadExecutor;
import org.apache.catalina.core.ThreadLocalLeakPreventionListener;
import org.apache.catalina.startup.Tomcat;
import org.apache.coyote.AbstractProtocol;
import org.apache.tomcat.util.net.Nio2Endpoint;
import org.apache.tomcat.util.threads.ResizableExecutor;
import org.apache.tomcat.util.threads.TaskQueue;
import org.apache.tomcat.util.threads.ThreadPoolExecutor;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sslsweep.leaver.Leaver;

/** The hooks on connectors without TLS, which need no certificate: their executors are the same. */
class ConnectorHooksTest {
    private static final String NIO = "org.apache.coyote.http11.Http11NioProtocol";
    private static final String NIO2 = "org.apache.coyote.http11.Http11Nio2Protocol";

    @TempDir
    Path base;
    private final Tomcat tomcat = new Tomcat();

    @AfterEach
    void end() throws LifecycleException {
        if (tomcat.getServer().getState().isAvailable()) {
            tomcat.stop();
        }
        tomcat.destroy();
    }

    private Connector connector(String protocol, boolean bindOnInit) {
        tomcat.setBaseDir(base.toString());
        Connector connector = new Connector(protocol);
        connector.setPort(0);
        connector.setThrowOnFailure(true);
        connector.setProperty("address", InetAddress.getLoopbackAddress().getHostAddress());
        connector.setProperty("maxThreads", "7");
        connector.setProperty("minSpareThreads", "3");
        connector.setProperty("bindOnInit", Boolean.toString(bindOnInit));
        tomcat.setConnector(connector);
        return connector;
    }

    private static ConnectorHooks hook(Connector connector) {
        return hook(connector, new ConnectorHooks(connector, "hooks test"));
    }

    private static ConnectorHooks hook(Connector connector, ConnectorHooks hooks) {
        connector.addLifecycleListener(event -> {
            switch (event.getType()) {
                case Lifecycle.BEFORE_INIT_EVENT:
                    hooks.beforeInit();
                    break;
                case Lifecycle.AFTER_INIT_EVENT:
                    hooks.afterInit();
                    break;
                case Lifecycle.BEFORE_START_EVENT:
                    hooks.beforeStart();
                    break;
                case Lifecycle.AFTER_START_EVENT:
                    hooks.afterStart();
                    break;
                case Lifecycle.AFTER_STOP_EVENT:
                    hooks.afterStop();
                    break;
                case Lifecycle.AFTER_DESTROY_EVENT:
                    hooks.afterDestroy();
                    break;
                default:
                    break;
            }
        });
        return hooks;
    }

    private static AbstractProtocol<?> handler(Connector connector) {
        return (AbstractProtocol<?>) connector.getProtocolHandler();
    }

    private static WorkerPool pool(Connector connector) {
        return assertInstanceOf(WorkerPool.class, handler(connector).getExecutor());
    }

    @ParameterizedTest
    @CsvSource({NIO + ",true", NIO + ",false", NIO2 + ",true", NIO2 + ",false"})
    void isTomcatsOwnPoolToTomcat(String protocol, boolean bindOnInit) throws Exception {
        Connector connector = connector(protocol, bindOnInit);
        hook(connector);
        tomcat.start();

        WorkerPool pool = pool(connector);
        assertEquals(7, handler(connector).getMaxThreads());
        assertEquals(3, handler(connector).getMinSpareThreads());
        assertEquals(7, pool.getMaximumPoolSize());
        assertEquals(3, pool.getCorePoolSize());
        assertEquals(60, pool.getKeepAliveTime(TimeUnit.SECONDS));
        Thread worker = pool.submit(Thread::currentThread).get(1, TimeUnit.MINUTES);
        assertTrue(worker.isDaemon());
        assertTrue(worker.getName().matches("http-nio2?-.*-auto-\\d+-exec-\\d+"), worker.getName());
        assertEquals(Thread.NORM_PRIORITY, worker.getPriority());

        handler(connector).setMaxThreads(9);
        assertEquals(9, pool.getMaximumPoolSize());

        tomcat.stop();
        tomcat.destroy();
        assertTrue(pool.isTerminated());
        assertNull(handler(connector).getExecutor());
    }

    @ParameterizedTest
    @CsvSource({NIO + ",true,false", NIO + ",false,false", NIO2 + ",true,true", NIO2 + ",false,false"})
    void followsTomcatThroughRestarts(String protocol, boolean bindOnInit, boolean keeps) throws Exception {
        Connector connector = connector(protocol, bindOnInit);
        hook(connector);
        tomcat.start();
        for (int round = 0; round < 5; round++) {
            WorkerPool before = pool(connector);
            connector.stop();
            // The pool of NIO2 belongs to the port, which stays bound.
            assertEquals(!keeps, before.isTerminated());
            connector.start();
            if (keeps) {
                assertSame(before, pool(connector));
            } else {
                assertNotSame(before, pool(connector));
            }
            assertFalse(pool(connector).isShutdown());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {NIO, NIO2})
    void leavesNoThreadsWhenTheStartFails(String protocol) throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Connector connector = connector(protocol, false);
            connector.setPort(taken.getLocalPort());
            hook(connector);
            WorkerPool[] made = new WorkerPool[1];
            connector.addLifecycleListener(event -> {
                if (event.getType().equals(Lifecycle.START_EVENT)) {
                    made[0] = pool(connector);
                }
            });
            assertThrows(LifecycleException.class, tomcat::start);
            tomcat.destroy();
            assertTrue(made[0].awaitTermination(1, TimeUnit.MINUTES));
        }
    }

    @Test
    void leavesNoThreadsWhenThePortOfNio2IsTaken() throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Connector connector = connector(NIO2, true);
            connector.setPort(taken.getLocalPort());
            ConnectorHooks hooks = new ConnectorHooks(connector, "hooks test");
            WorkerPool[] made = new WorkerPool[1];
            hook(connector, hooks);
            connector.addLifecycleListener(event -> {
                if (event.getType().equals(Lifecycle.BEFORE_INIT_EVENT)) {
                    made[0] = pool(connector);
                }
            });
            assertThrows(LifecycleException.class, tomcat::start);
            tomcat.destroy();
            assertTrue(made[0].awaitTermination(1, TimeUnit.MINUTES));
        }
    }

    /** The public ways, where the JVM forbids to look into Tomcat. */
    @ParameterizedTest
    @CsvSource({NIO + ",true", NIO + ",false", NIO2 + ",true", NIO2 + ",false"})
    void endsThePoolWhereTomcatTakesItForAnothers(String protocol, boolean bindOnInit) throws Exception {
        Connector connector = connector(protocol, bindOnInit);
        hook(connector, new ConnectorHooks(connector, "public ways", null));
        tomcat.start();
        WorkerPool pool = pool(connector);
        assertEquals(7, pool.getMaximumPoolSize());
        assertEquals(3, pool.getCorePoolSize());
        assertEquals("done", pool.submit(() -> "done").get(1, TimeUnit.MINUTES));
        connector.stop();
        assertEquals(!(protocol.equals(NIO2) && bindOnInit), pool.isShutdown());
        connector.start();
        assertEquals("done", pool(connector).submit(() -> "done").get(1, TimeUnit.MINUTES));
        tomcat.stop();
        tomcat.destroy();
        assertTrue(pool.awaitTermination(1, TimeUnit.MINUTES));
    }

    @ParameterizedTest
    @ValueSource(strings = {NIO, NIO2})
    void wrapsAnExecutorOfOthers(String protocol) throws Exception {
        ExecutorService others = Executors.newCachedThreadPool();
        try {
            Connector connector = connector(protocol, true);
            handler(connector).setExecutor(others);
            ConnectorHooks hooks = hook(connector);
            tomcat.start();
            Executor wrapped = handler(connector).getExecutor();
            ExecutorService service = assertInstanceOf(GuardingExecutorService.class, wrapped);
            assertTrue(hooks.report().contains("executor wrapped"), hooks.report());
            connector.stop();
            connector.start();
            assertSame(wrapped, handler(connector).getExecutor());

            service.shutdown();
            assertEquals(0, service.shutdownNow().size());
            assertFalse(service.isShutdown());
            Future<String> done = service.submit(() -> "done");
            assertEquals("done", done.get(1, TimeUnit.MINUTES));
        } finally {
            tomcat.stop();
            assertFalse(others.isShutdown());
            others.shutdownNow();
        }
    }

    /** Tomcat renews the threads of executors that it knows, and shows their names. */
    @ParameterizedTest
    @ValueSource(strings = {NIO, NIO2})
    void renewsTheThreadsOfAnExecutorOfOthers(String protocol) throws Exception {
        AtomicInteger renewals = new AtomicInteger();
        StandardThreadExecutor others = new StandardThreadExecutor() {
            @Override
            public void contextStopping() {
                renewals.incrementAndGet();
            }
        };
        others.setName("others");
        others.setMinSpareThreads(2);
        others.setMaxThreads(8);
        tomcat.getService().addExecutor(others);
        tomcat.getServer().addLifecycleListener(new ThreadLocalLeakPreventionListener());
        Connector connector = connector(protocol, true);
        Context context = tomcat.addContext("", null);
        handler(connector).setExecutor(others);
        ConnectorHooks hooks = hook(connector);
        tomcat.start();
        assertTrue(hooks.report().contains("executor wrapped"), hooks.report());
        assertEquals("others", connector.getExecutorName());
        context.stop();
        assertEquals(1, renewals.get());
        Executor wrapped = handler(connector).getExecutor();
        assertEquals(8, assertInstanceOf(ResizableExecutor.class, wrapped).getMaxThreads());
        ExecutorService service = assertInstanceOf(ExecutorService.class, wrapped);
        assertEquals("done", service.submit(() -> "done").get(1, TimeUnit.MINUTES));
        assertEquals(2, service.invokeAll(List.of(() -> 1, () -> 2)).size());
        assertFalse(service.isShutdown());
    }

    @Test
    void tellsTheFiguresOfAnExecutorOfOthers() throws Exception {
        assertEquals(List.of(1, 7, 1), figures(new java.util.concurrent.ThreadPoolExecutor(3, 7, 1, TimeUnit.MINUTES,
                new LinkedBlockingQueue<>())));
        TaskQueue queue = new TaskQueue();
        ThreadPoolExecutor tomcats = new ThreadPoolExecutor(1, 8, 1, TimeUnit.MINUTES, queue);
        queue.setParent(tomcats);
        assertEquals(List.of(1, 8, 1), figures(tomcats));
        assertEquals(List.of(-1, -1, -1), figures(Executors.newSingleThreadExecutor()));
    }

    /** Threads, the most that may be, and how many work, while the executor has one task; it is shut down. */
    private static List<Integer> figures(ExecutorService executor) throws Exception {
        WorkerHooks hooks = new WorkerHooks(new ConnectorLabels("figures"), Phase.TASK);
        Executor wrapped = GuardingStandardExecutor.around(executor, hooks);
        CountDownLatch begun = new CountDownLatch(1);
        CountDownLatch seen = new CountDownLatch(1);
        wrapped.execute(() -> {
            begun.countDown();
            try {
                seen.await();
            } catch (InterruptedException end) {
                Thread.currentThread().interrupt();
            }
        });
        try {
            assertTrue(begun.await(1, TimeUnit.MINUTES));
            ResizableExecutor figures = assertInstanceOf(ResizableExecutor.class, wrapped);
            return List.of(figures.getPoolSize(), figures.getMaxThreads(), figures.getActiveCount());
        } finally {
            seen.countDown();
            executor.shutdown();
        }
    }

    /** Tomcat ends the group for its own pool alone. */
    @ParameterizedTest
    @CsvSource({"true,true", "true,false", "false,true", "false,false"})
    @Timeout(60)
    void endsTheChannelGroupOfNio2(boolean bindOnInit, boolean ours) throws Exception {
        long before = pollers();
        HygieneExecutor own = new HygieneExecutor();
        own.setName("shared");
        ExecutorService others = Executors.newCachedThreadPool();
        tomcat.getService().addExecutor(own);
        try {
            Connector connector = connector(NIO2, bindOnInit);
            handler(connector).setExecutor(ours ? own : others);
            hook(connector);
            tomcat.start();
            AsynchronousChannelGroup first = channelGroup(connector);
            connector.stop();
            assertEquals(!bindOnInit, first.isShutdown());
            connector.start();
            AsynchronousChannelGroup second = channelGroup(connector);
            assertEquals(bindOnInit, first == second);
            assertFalse(second.isShutdown());
            tomcat.stop();
            tomcat.destroy();
            assertTrue(second.isShutdown());
            // A thread of the group's does it; until then the test's time limit runs.
            while (pollers() > before) {
                Thread.onSpinWait();
            }
            assertFalse(others.isShutdown());
        } finally {
            others.shutdownNow();
        }
    }

    /** Descriptors that a channel group waits for events with. */
    private static long pollers() throws IOException {
        try (DirectoryStream<Path> descriptors = Files.newDirectoryStream(Path.of("/proc/self/fd"))) {
            return StreamSupport.stream(descriptors.spliterator(), false)
                    .filter(ConnectorHooksTest::isPoller).count();
        }
    }

    private static boolean isPoller(Path descriptor) {
        try {
            return Files.readSymbolicLink(descriptor).toString().contains("[eventpoll]");
        } catch (IOException closed) {
            return false;
        }
    }

    private static AsynchronousChannelGroup channelGroup(Connector connector) throws Exception {
        Field endpoint = AbstractProtocol.class.getDeclaredField("endpoint");
        endpoint.setAccessible(true);
        Field group = Nio2Endpoint.class.getDeclaredField("threadGroup");
        group.setAccessible(true);
        return (AsynchronousChannelGroup) group.get(endpoint.get(handler(connector)));
    }

    @Test
    void leavesOurOwnExecutorAlone() throws Exception {
        HygieneExecutor executor = new HygieneExecutor();
        executor.setName("own");
        Connector connector = connector(NIO, true);
        tomcat.getService().addExecutor(executor);
        handler(connector).setExecutor(executor);
        ConnectorHooks hooks = hook(connector);
        tomcat.start();
        assertSame(executor, handler(connector).getExecutor());
        assertTrue(hooks.report().contains("executor own"), hooks.report());
    }

    @Test
    void replacesThePoolOfARunningConnector() throws Exception {
        Connector connector = connector(NIO, true);
        tomcat.start();
        Executor before = handler(connector).getExecutor();
        ConnectorHooks hooks = new ConnectorHooks(connector, "late");
        hooks.hookLate();
        WorkerPool pool = pool(connector);
        assertEquals(7, handler(connector).getMaxThreads());
        CountDownLatch done = new CountDownLatch(2);
        before.execute(done::countDown);
        pool.execute(done::countDown);
        assertTrue(done.await(1, TimeUnit.MINUTES));
        tomcat.stop();
        hooks.afterStop();
        assertTrue(pool.isTerminated());
    }

    /** An embedder's pool may be of the class that Tomcat's own is of. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void wrapsAPoolOfOthersThatIsFoundLate(boolean bindOnInit) throws Exception {
        ThreadPoolExecutor others = new ThreadPoolExecutor(4, 5, 1, TimeUnit.MINUTES, new TaskQueue());
        try {
            Connector connector = connector(NIO, bindOnInit);
            handler(connector).setExecutor(others);
            tomcat.init();
            ConnectorHooks hooks = new ConnectorHooks(connector, "late pool of others");
            hooks.hookLate();
            hook(connector, hooks);
            tomcat.start();
            assertTrue(hooks.report().contains("executor wrapped"), hooks.report());
            handler(connector).getExecutor().execute(() -> { });
            assertEquals(4, others.getCorePoolSize());
            tomcat.stop();
            assertFalse(others.isShutdown());
        } finally {
            others.shutdownNow();
        }
    }

    @Test
    void leavesThePoolOfARunningNio2ConnectorAlone() throws Exception {
        Connector connector = connector(NIO2, true);
        tomcat.start();
        Executor before = handler(connector).getExecutor();
        ConnectorHooks hooks = new ConnectorHooks(connector, "late");
        hooks.hookLate();
        hooks.beforeStart();
        assertSame(before, handler(connector).getExecutor());
        assertTrue(hooks.report().contains("not hooked"), hooks.report());
    }

    /** The thread that starts Tomcat starts its applications too, between the binding and the start of connectors. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void answersForWhatBindingLeavesAlone(boolean bindOnInit) throws Exception {
        Libcrypto.load();
        Connector connector = connector(NIO, bindOnInit);
        String label = "set-up " + bindOnInit;
        hook(connector, new ConnectorHooks(connector, label));
        String binds = bindOnInit ? Lifecycle.BEFORE_INIT_EVENT : Lifecycle.BEFORE_START_EVENT;
        connector.addLifecycleListener(event -> {
            if (event.getType().equals(binds)) {
                Leaver.leave(2);
            }
        });
        tomcat.addContext("", null).addLifecycleListener(event -> {
            if (event.getType().equals(Lifecycle.CONFIGURE_START_EVENT)) {
                Leaver.leave(3);
            }
        });
        tomcat.start();
        assertEquals(2, Ledger.leftovers(label + "/set-up"));
        Leaver.drain();
    }

    @Test
    void countsAsThePoolDoes() throws Exception {
        Connector connector = connector(NIO, true);
        hook(connector);
        long before = Ledger.tasks("hooks test/task");
        tomcat.start();
        WorkerPool pool = pool(connector);
        for (int i = 0; i < 100; i++) {
            pool.execute(() -> { });
        }
        pool.shutdown();
        assertTrue(pool.awaitTermination(1, TimeUnit.MINUTES));
        assertEquals(100, pool.getCompletedTaskCount());
        assertEquals(100, Ledger.tasks("hooks test/task") - before);
    }
}
