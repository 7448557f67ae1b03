package org.sslsweep.tomcat;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.apache.tomcat.util.net.Nio2Channel;
import org.apache.tomcat.util.net.NioChannel;
import org.apache.tomcat.util.net.SocketEvent;
import org.apache.tomcat.util.net.SocketProcessorBase;
import org.apache.tomcat.util.net.SocketWrapperBase;

/**
 * Tells what Tomcat's tasks are about. Looks at the task's fields before it runs, on the thread that will run it;
 * allocates nothing.
 */
final class SocketTasks {
    private static final VarHandle WRAPPER = field("socketWrapper", SocketWrapperBase.class);
    private static final VarHandle EVENT = field("event", SocketEvent.class);
    /** First task of a connection of the APR connector, which Tomcat 9 has alone. */
    private static final Class<?> APR_FIRST = find("org.apache.tomcat.util.net.AprEndpoint$SocketWithOptionsProcessor");
    /** Works a request of HTTP/2. */
    private static final Class<?> STREAM = find("org.apache.coyote.http2.StreamRunnable");

    private SocketTasks() {}

    /** Whether Tomcat's tasks can be looked into; else their phase is the one for others. */
    static boolean accessible() {
        return WRAPPER != null && EVENT != null;
    }

    /** @param other the phase of tasks that do not tell */
    static Phase phase(Runnable task, Phase other) {
        if (task instanceof SocketProcessorBase) {
            return accessible() ? phase((SocketProcessorBase<?>) task, other) : other;
        }
        Class<?> type = task.getClass();
        if (type == APR_FIRST) {
            return Phase.HANDSHAKE;
        }
        return type == STREAM ? Phase.READ : other;
    }

    private static Phase phase(SocketProcessorBase<?> task, Phase other) {
        SocketWrapperBase<?> wrapper = (SocketWrapperBase<?>) WRAPPER.get(task);
        SocketEvent event = (SocketEvent) EVENT.get(task);
        if (wrapper == null || event == null) {
            return other;
        }
        switch (event) {
            case OPEN_READ:
                return handshakes(wrapper.getSocket()) ? Phase.HANDSHAKE : Phase.READ;
            case OPEN_WRITE:
                return handshakes(wrapper.getSocket()) ? Phase.HANDSHAKE : Phase.WRITE;
            case STOP:
            case TIMEOUT:
            case DISCONNECT:
            case ERROR:
            case CONNECT_FAIL:
                return Phase.CLOSE;
            default:
                return other;
        }
    }

    private static boolean handshakes(Object socket) {
        if (socket instanceof NioChannel) {
            return !((NioChannel) socket).isHandshakeComplete();
        }
        return socket instanceof Nio2Channel && !((Nio2Channel) socket).isHandshakeComplete();
    }

    private static VarHandle field(String name, Class<?> type) {
        try {
            // Protected; no public way leads there.
            return MethodHandles.privateLookupIn(SocketProcessorBase.class, MethodHandles.lookup())
                    .findVarHandle(SocketProcessorBase.class, name, type);
        } catch (ReflectiveOperationException | RuntimeException otherTomcat) {
            return null;
        }
    }

    private static Class<?> find(String name) {
        try {
            return Class.forName(name, false, SocketProcessorBase.class.getClassLoader());
        } catch (ClassNotFoundException | LinkageError otherTomcat) {
            return null;
        }
    }
}
