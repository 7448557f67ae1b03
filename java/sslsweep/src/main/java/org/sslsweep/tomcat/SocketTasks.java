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
    private static final VarHandle WRAPPER = field(SocketProcessorBase.class, "socketWrapper", SocketWrapperBase.class);
    private static final VarHandle EVENT = field(SocketProcessorBase.class, "event", SocketEvent.class);
    /** Asynchronous reads and writes, as HTTP/2 does them. */
    private static final Class<?> OPERATION = find("org.apache.tomcat.util.net.SocketWrapperBase$OperationState");
    private static final VarHandle READS = OPERATION == null ? null : field(OPERATION, "read", boolean.class);
    /** What the name of the task's class tells; null: nothing. */
    private static final ClassValue<Phase> BY_CLASS = new ClassValue<>() {
        @Override
        protected Phase computeValue(Class<?> type) {
            return byName(type.getName());
        }
    };

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
        if (READS != null && OPERATION.isInstance(task)) {
            return (boolean) READS.get(task) ? Phase.READ : Phase.WRITE;
        }
        Phase told = BY_CLASS.get(task.getClass());
        return told != null ? told : other;
    }

    private static Phase byName(String name) {
        switch (name) {
            case "org.apache.tomcat.util.net.AprEndpoint$SocketWithOptionsProcessor":
                // First task of a connection of the APR connector.
                return Phase.HANDSHAKE;
            case "org.apache.coyote.http2.StreamRunnable":
                return Phase.READ;
            default:
                return name.startsWith("sun.nio.ch.") || name.startsWith("org.apache.tomcat.util.net.Nio2Endpoint")
                        ? Phase.IO : null;
        }
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

    private static VarHandle field(Class<?> owner, String name, Class<?> type) {
        try {
            // Protected; no public way leads there.
            return MethodHandles.privateLookupIn(owner, MethodHandles.lookup()).findVarHandle(owner, name, type);
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
