package org.sslsweep.tomcat;

import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.channels.AsynchronousChannelGroup;
import java.util.concurrent.TimeUnit;
import org.apache.coyote.AbstractProtocol;
import org.apache.coyote.ProtocolHandler;
import org.apache.juli.logging.Log;
import org.apache.juli.logging.LogFactory;
import org.apache.tomcat.util.net.AbstractEndpoint;
import org.apache.tomcat.util.net.SSLContext;
import org.apache.tomcat.util.net.SSLHostConfig;
import org.apache.tomcat.util.net.SSLHostConfigCertificate;
import org.apache.tomcat.util.net.SSLImplementation;
import org.apache.tomcat.util.threads.TaskQueue;
import org.apache.tomcat.util.threads.TaskThreadFactory;

/**
 * What Tomcat has no public way for: a pool that a connector treats as the one it makes itself, and its TLS
 * implementation under the name that logs and JMX know.
 *
 * <p>Where the JVM forbids to look into Tomcat's classes (it runs as named modules), the public ways are taken, whose
 * differences {@code docs/tomcat.md} tells.
 */
final class EndpointAccess {
    private static final Log LOG = LogFactory.getLog(EndpointAccess.class);
    private static final Field ENDPOINT = field(AbstractProtocol.class, "endpoint");
    private static final Field INTERNAL = field(AbstractEndpoint.class, "internalExecutor");
    /** Tomcat 9 has one field for contexts, later ones keep apart what the application provides. */
    private static final Field CONTEXT = first(field(SSLHostConfigCertificate.class, "sslContextGenerated"),
            field(SSLHostConfigCertificate.class, "sslContext"));

    /** An endpoint's name before Tomcat gives it one. */
    private static final String UNNAMED = "TP";

    private final AbstractEndpoint<?, ?> endpoint;

    private EndpointAccess(AbstractEndpoint<?, ?> endpoint) {
        this.endpoint = endpoint;
    }

    /** Null where it cannot be reached. */
    static EndpointAccess of(ProtocolHandler handler) {
        if (ENDPOINT == null || INTERNAL == null || !(handler instanceof AbstractProtocol)) {
            return null;
        }
        try {
            return new EndpointAccess((AbstractEndpoint<?, ?>) ENDPOINT.get(handler));
        } catch (IllegalAccessException impossible) {
            return null;
        }
    }

    /** Whether the port is bound when the connector is initialised, before it is started. */
    boolean bindsOnInit() {
        return endpoint.getBindOnInit();
    }

    boolean usesVirtualThreads() {
        return Boolean.TRUE.equals(Reflection.call(endpoint, "getUseVirtualThreads"));
    }

    /** A pool as {@link AbstractEndpoint#createExecutor} makes it. */
    WorkerPool newPool(WorkerHooks hooks, String name) {
        int queue = Reflection.number(endpoint, "getMaxQueueSize", Integer.MAX_VALUE);
        int idle = Reflection.number(endpoint, "getThreadsMaxIdleTime", 60_000);
        return WorkerPool.start(hooks, endpoint.getMinSpareThreads(), endpoint.getMaxThreads(), idle,
                new TaskQueue(queue),
                new TaskThreadFactory(name + "-exec-", endpoint.getDaemon(), endpoint.getThreadPriority()));
    }

    /** The endpoint's name; {@code early} before the connector is initialised. */
    String nameOr(String early) {
        return UNNAMED.equals(endpoint.getName()) ? early : endpoint.getName();
    }

    /** Whether the connector's executor, where it has one, was made by Tomcat for it alone, or is ours in its place. */
    boolean hasOwnExecutor() {
        try {
            return INTERNAL.getBoolean(endpoint);
        } catch (IllegalAccessException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** Gives the connector a pool as its own: it reports and resizes it, and shuts it down when its time has come. */
    void setOwnExecutor(WorkerPool pool) {
        endpoint.setExecutor(pool);
        try {
            INTERNAL.setBoolean(endpoint, true);
        } catch (IllegalAccessException impossible) {
            throw new IllegalStateException(impossible);
        }
    }

    /** How long Tomcat waits for its own pool to end. */
    long terminationTimeoutMillis() {
        return endpoint.getExecutorTerminationTimeoutMillis();
    }

    /**
     * Ends the channel group of an NIO2 endpoint that is not bound any more: when the last connection is closed, as
     * Tomcat is doing on a worker, but not later than Tomcat would wait for its own pool. Nothing where there is none.
     */
    void endChannelGroup() {
        Field field = endpointField("threadGroup");
        try {
            AsynchronousChannelGroup group = field == null ? null : (AsynchronousChannelGroup) field.get(endpoint);
            if (group == null) {
                return;
            }
            group.shutdown();
            // Whether it has ended it does not know: it asks its executor, which goes on.
            long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(terminationTimeoutMillis());
            while (!endpoint.getConnections().isEmpty()) {
                if (System.nanoTime() - end > 0) {
                    group.shutdownNow();
                    return;
                }
                Thread.sleep(1);
            }
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
        } catch (IllegalAccessException | IOException notEnded) {
            LOG.warn("sslsweep: the channel group of " + endpoint.getName() + " could not be ended: a thread and three"
                    + " descriptors stay open", notEnded);
        }
    }

    /** Whether {@link #guardTls} can do it. */
    boolean canGuardTls() {
        return CONTEXT != null && implementationField() != null;
    }

    /**
     * Guards the TLS of an endpoint that is bound: the implementation, for contexts to come, and the contexts that
     * there are.
     *
     * @return whether it did, now or before; false also where the endpoint is not bound
     */
    boolean guardTls(ConnectorLabels labels) {
        Field field = implementationField();
        if (field == null || CONTEXT == null) {
            return false;
        }
        try {
            SSLImplementation implementation = (SSLImplementation) field.get(endpoint);
            if (implementation == null || implementation instanceof SweepingOpenSSLImplementation) {
                return implementation != null;
            }
            for (SSLHostConfig host : endpoint.findSslHostConfigs()) {
                for (SSLHostConfigCertificate certificate : host.getCertificates()) {
                    Object context = CONTEXT.get(certificate);
                    if (context != null && !(context instanceof SweepingContext)) {
                        CONTEXT.set(certificate, new SweepingContext((SSLContext) context, labels));
                    }
                }
            }
            field.set(endpoint, new SweepingOpenSSLImplementation(implementation, labels));
            return true;
        } catch (IllegalAccessException | RuntimeException | LinkageError problem) {
            // What is replaced by now works as it is.
            LOG.warn("sslsweep: the TLS of " + labels.base + " is not guarded: " + problem, problem);
            return false;
        }
    }

    /** In AbstractJsseEndpoint, or (Tomcat 11) in AbstractEndpoint. */
    private Field implementationField() {
        return endpointField("sslImplementation");
    }

    /** A field of the endpoint's class or of one that it extends; null where there is none. */
    private Field endpointField(String name) {
        for (Class<?> type = endpoint.getClass(); type != null; type = type.getSuperclass()) {
            Field field = field(type, name);
            if (field != null) {
                return field;
            }
        }
        return null;
    }

    private static Field first(Field one, Field other) {
        return one != null ? one : other;
    }

    private static Field field(Class<?> type, String name) {
        try {
            Field field = type.getDeclaredField(name);
            field.setAccessible(true);
            return field;
        } catch (NoSuchFieldException | RuntimeException otherTomcat) {
            return null;
        }
    }
}
