package org.sslsweep.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.AsynchronousChannelGroup;
import java.nio.channels.AsynchronousServerSocketChannel;
import java.nio.channels.AsynchronousSocketChannel;
import java.nio.channels.CompletionHandler;
import java.util.List;
import java.util.concurrent.AbstractExecutorService;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.tomcat.util.net.AprEndpoint;
import org.apache.tomcat.util.net.Nio2Channel;
import org.apache.tomcat.util.net.Nio2Endpoint;
import org.apache.tomcat.util.net.NioChannel;
import org.apache.tomcat.util.net.NioEndpoint;
import org.apache.tomcat.util.net.SocketBufferHandler;
import org.apache.tomcat.util.net.SocketEvent;
import org.apache.tomcat.util.net.SocketProcessorBase;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SocketTasksTest {
    @Test
    void looksIntoTomcatsTasks() {
        assertTrue(SocketTasks.accessible());
    }

    @ParameterizedTest
    @CsvSource({
        "OPEN_READ, false, HANDSHAKE", "OPEN_WRITE, false, HANDSHAKE", "OPEN_READ, true, READ",
        "OPEN_WRITE, true, WRITE",
        "STOP, true, CLOSE", "TIMEOUT, true, CLOSE", "DISCONNECT, true, CLOSE", "ERROR, true, CLOSE",
        "CONNECT_FAIL, true, CLOSE", "ERROR, false, CLOSE",
    })
    void tellsThePhase(SocketEvent event, boolean handshakeOver, Phase expected) {
        assertEquals(expected, SocketTasks.phase(new Nio().task(event, handshakeOver), Phase.TASK));
        assertEquals(expected, SocketTasks.phase(new Nio2().task(event, handshakeOver), Phase.TASK));
    }

    @ParameterizedTest
    @CsvSource({"OPEN_READ, READ", "OPEN_WRITE, WRITE", "DISCONNECT, CLOSE"})
    void tellsThePhaseOfApr(SocketEvent event, Phase expected) {
        assertEquals(expected, SocketTasks.phase(new Apr().task(event), Phase.TASK));
    }

    @Test
    void knowsTheFirstTaskOfApr() {
        assertEquals(Phase.HANDSHAKE, SocketTasks.phase(new Apr().first(), Phase.TASK));
    }

    @Test
    void takesATaskThatHasRun() {
        SocketProcessorBase<?> task = new Nio().task(SocketEvent.OPEN_READ, true);
        task.reset(null, SocketEvent.OPEN_READ);
        assertEquals(Phase.IO, SocketTasks.phase(task, Phase.IO));
    }

    @Test
    void knowsRequestsOfHttp2() throws Exception {
        Class<?> type = Class.forName("org.apache.coyote.http2.StreamRunnable");
        Constructor<?> constructor = type.getDeclaredConstructors()[0];
        constructor.setAccessible(true);
        assertEquals(Phase.READ, SocketTasks.phase((Runnable) constructor.newInstance(null, null), Phase.TASK));
    }

    @ParameterizedTest
    @CsvSource({"true, READ", "false, WRITE"})
    void knowsAsynchronousReadsAndWrites(boolean read, Phase expected) throws Exception {
        assertEquals(expected, SocketTasks.phase(new Nio().operation(read), Phase.TASK));
    }

    @Test
    void takesOthersAsTold() {
        Runnable task = () -> { };
        assertEquals(Phase.TASK, SocketTasks.phase(task, Phase.TASK));
        assertEquals(Phase.IO, SocketTasks.phase(task, Phase.IO));
    }

    @Test
    void knowsCompletionsOfTheJdk() throws Exception {
        AtomicReference<Phase> seen = new AtomicReference<>();
        ExecutorService threads = Executors.newCachedThreadPool();
        ExecutorService pool = new AbstractExecutorService() {
            @Override
            public void execute(Runnable task) {
                seen.set(SocketTasks.phase(task, Phase.TASK));
                threads.execute(task);
            }

            @Override
            public void shutdown() {
                threads.shutdown();
            }

            @Override
            public List<Runnable> shutdownNow() {
                return threads.shutdownNow();
            }

            @Override
            public boolean isShutdown() {
                return threads.isShutdown();
            }

            @Override
            public boolean isTerminated() {
                return threads.isTerminated();
            }

            @Override
            public boolean awaitTermination(long timeout, TimeUnit unit) throws InterruptedException {
                return threads.awaitTermination(timeout, unit);
            }
        };
        AsynchronousChannelGroup group = AsynchronousChannelGroup.withThreadPool(pool);
        try (AsynchronousServerSocketChannel server = AsynchronousServerSocketChannel.open(group)
                .bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
                AsynchronousSocketChannel client = AsynchronousSocketChannel.open(group)) {
            CompletableFuture<Void> accepted = new CompletableFuture<>();
            server.accept(null, new CompletionHandler<AsynchronousSocketChannel, Void>() {
                @Override
                public void completed(AsynchronousSocketChannel channel, Void none) {
                    accepted.complete(null);
                }

                @Override
                public void failed(Throwable problem, Void none) {
                    accepted.completeExceptionally(problem);
                }
            });
            client.connect(server.getLocalAddress());
            accepted.get(1, TimeUnit.MINUTES);
            assertEquals(Phase.IO, seen.get());
        } finally {
            group.shutdownNow();
        }
    }

    private static final class Nio extends NioEndpoint {
        SocketProcessorBase<NioChannel> task(SocketEvent event, boolean handshakeOver) {
            NioChannel channel = new NioChannel(new SocketBufferHandler(64, 64, false)) {
                @Override
                public boolean isHandshakeComplete() {
                    return handshakeOver;
                }
            };
            return createSocketProcessor(new NioSocketWrapper(channel, this), event);
        }

        /** As HTTP/2 makes them. The method has parameters that only subclasses can name. */
        Runnable operation(boolean read) throws ReflectiveOperationException {
            NioChannel channel = new NioChannel(new SocketBufferHandler(64, 64, false));
            for (Method method : NioSocketWrapper.class.getDeclaredMethods()) {
                if (method.getName().equals("newOperationState") && !method.isBridge()) {
                    method.setAccessible(true);
                    return (Runnable) method.invoke(new NioSocketWrapper(channel, this), read, null, 0, 0, null, 0L, null,
                            null, null, null, null, null);
                }
            }
            throw new NoSuchMethodException("newOperationState");
        }
    }

    private static final class Nio2 extends Nio2Endpoint {
        SocketProcessorBase<Nio2Channel> task(SocketEvent event, boolean handshakeOver) {
            Nio2Channel channel = new Nio2Channel(new SocketBufferHandler(64, 64, false)) {
                @Override
                public boolean isHandshakeComplete() {
                    return handshakeOver;
                }
            };
            return createSocketProcessor(new Nio2SocketWrapper(channel, this), event);
        }
    }

    @SuppressWarnings("deprecation") // Tomcat 10.1 has it no more; 9 does
    private static final class Apr extends AprEndpoint {
        SocketProcessorBase<Long> task(SocketEvent event) {
            return createSocketProcessor(new AprSocketWrapper(1L, this), event);
        }

        Runnable first() {
            return new SocketWithOptionsProcessor(new AprSocketWrapper(1L, this));
        }
    }
}
