package org.sslsweep.tomcat;

import java.util.concurrent.TimeUnit;
import org.apache.tomcat.util.net.AprEndpoint;
import org.apache.tomcat.util.net.NioChannel;
import org.apache.tomcat.util.net.NioEndpoint;
import org.apache.tomcat.util.net.SocketBufferHandler;
import org.apache.tomcat.util.net.SocketEvent;
import org.apache.tomcat.util.threads.TaskQueue;

/** The listener's worker pools, one for each kind of connector, and tasks as its endpoint makes them. */
public final class Workers {
    private final WorkerPool pool;
    private final Runnable task;

    private Workers(String protocol, Phase other, Runnable task) {
        ConnectorLabels labels = new ConnectorLabels("bench-" + protocol);
        pool = WorkerPool.start(new WorkerHooks(labels, other), 0, 1, TimeUnit.SECONDS.toMillis(60), new TaskQueue(),
                Thread::new);
        this.task = task;
    }

    /** Those of an NIO connector; the task is a read on a connection whose handshake is over. */
    public static Workers nio() {
        return new Workers("nio", Phase.TASK, new Nio().task());
    }

    /** Those of an NIO2 connector, whose tasks are the JDK's and do not tell what they are about. */
    public static Workers nio2() {
        return new Workers("nio2", Phase.IO, () -> { });
    }

    /** Those of an APR connector; the task is a read. */
    public static Workers apr() {
        return new Workers("apr", Phase.TASK, new Apr().task());
    }

    /** What the pool does before and after a task, on the thread that works on it. */
    public void runTask() {
        pool.beforeExecute(Thread.currentThread(), task);
        pool.afterExecute(task, null);
    }

    /** Ends the pool. */
    public void close() {
        pool.shutdownNow();
    }

    private static final class Nio extends NioEndpoint {
        Runnable task() {
            NioChannel channel = new NioChannel(new SocketBufferHandler(64, 64, false)) {
                @Override
                public boolean isHandshakeComplete() {
                    return true;
                }
            };
            return createSocketProcessor(new NioSocketWrapper(channel, this), SocketEvent.OPEN_READ);
        }
    }

    @SuppressWarnings("deprecation") // Tomcat 10.1 has it no more; 9 does
    private static final class Apr extends AprEndpoint {
        Runnable task() {
            return createSocketProcessor(new AprSocketWrapper(1L, this), SocketEvent.OPEN_READ);
        }
    }
}
