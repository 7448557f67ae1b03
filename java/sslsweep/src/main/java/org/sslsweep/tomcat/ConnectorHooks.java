package org.sslsweep.tomcat;

import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;
import javax.management.ObjectName;
import org.apache.catalina.connector.Connector;
import org.apache.coyote.AbstractProtocol;
import org.apache.coyote.ProtocolHandler;
import org.apache.coyote.http11.AbstractHttp11Protocol;
import org.apache.juli.logging.Log;
import org.apache.juli.logging.LogFactory;
import org.apache.tomcat.util.threads.TaskQueue;
import org.apache.tomcat.util.threads.TaskThreadFactory;
import org.apache.tomcat.util.threads.ThreadPoolExecutor;
import org.sslsweep.TaskHooks;
import org.sslsweep.ThreadHygiene;

/**
 * The hooks of one TLS connector: its executor and its TLS implementation. Called from the connector's lifecycle
 * events, on the thread that starts or stops it.
 */
final class ConnectorHooks {
    private static final Log LOG = LogFactory.getLog(ConnectorHooks.class);
    /** The labels of the connector that this thread is binding: Tomcat makes its TLS implementation by a bare name. */
    private static final ThreadLocal<ConnectorLabels> BINDING = new ThreadLocal<>();

    private final Connector connector;
    private final ProtocolHandler handler;
    private final EndpointAccess endpoint;
    private final boolean nio2;
    private final boolean apr;
    private final ConnectorLabels labels;
    private final WorkerHooks workerHooks;
    /** Name of the TLS implementation that Tomcat would use; null for JSSE, and on the APR connector. */
    private final String tls;

    /** Made last; mostly ended by Tomcat. */
    private WorkerPool pool;
    /** The executor of others that ours is around; null where there is none. */
    private Executor wrapped;
    private boolean bound;
    /** Name to give back when the endpoint is bound. */
    private String nameBefore;
    private boolean binding;
    /** NIO2's channel group is made with an executor which it may shut down without harm, and Tomcat does not do it. */
    private boolean endsChannelGroup;
    private String executorReport = "executor not hooked";
    private boolean tlsGuarded;
    /** It works on a pool that cannot be replaced before the port is given back. */
    private boolean keepsExecutor;

    /** @throws IllegalArgumentException when the pattern for labels is not one */
    ConnectorHooks(Connector connector, String pattern) {
        this(connector, pattern, EndpointAccess.of(connector.getProtocolHandler()));
    }

    /** @param endpoint null where it cannot be reached */
    ConnectorHooks(Connector connector, String pattern, EndpointAccess endpoint) {
        this.connector = connector;
        this.endpoint = endpoint;
        handler = connector.getProtocolHandler();
        nio2 = Reflection.isA(handler, "org.apache.coyote.http11.Http11Nio2Protocol");
        apr = Reflection.isA(handler, "org.apache.coyote.http11.Http11AprProtocol");
        tls = apr ? null : TlsChoice.of(connector);
        if (tls != null) {
            // Tomcat does the same in a moment; done now, the connector's name says openssl already. Where ours is
            // named, Tomcat would call the connector https-jsse-...
            TlsChoice.set(connector, tls);
        }
        labels = new ConnectorLabels(ConnectorLabels.base(pattern, name(), connector.getPortWithOffset()));
        workerHooks = new WorkerHooks(labels, nio2 ? Phase.IO : Phase.TASK);
    }

    /** Whether the connector has TLS, so that there is something to guard. */
    static boolean applyTo(Connector connector) {
        ProtocolHandler handler = connector.getProtocolHandler();
        return handler instanceof AbstractHttp11Protocol && ((AbstractHttp11Protocol<?>) handler).isSSLEnabled();
    }

    /** The labels for a TLS implementation that is made on this thread; null: without the native library, unguarded. */
    static ConnectorLabels labelsHere() {
        try {
            ConnectorLabels here = BINDING.get();
            return here != null || !ThreadHygiene.isAvailable() ? here : new ConnectorLabels("tls");
        } catch (RuntimeException | LinkageError problem) {
            LOG.error("sslsweep: a TLS implementation is not guarded: " + problem, problem);
            return null;
        }
    }

    /** Whether TLS is Java's own, or another that is not OpenSSL by Tomcat. */
    private boolean isWithoutOpenSsl() {
        return !apr && TlsChoice.guardOf(tls) == null;
    }

    /** Whether the connector is one of APR. */
    boolean isApr() {
        return apr;
    }

    String label() {
        return labels.base;
    }

    /** What the operator should know, with what to do; null: all is as it should be. */
    String warning() {
        if (!apr && tls == null) {
            return "the TLS of " + labels.base + " is Java's own (JSSE), so that there is little to sweep. For OpenSSL:"
                    + " <Listener className=\"org.apache.catalina.core.AprLifecycleListener\"/> in server.xml and"
                    + " libtcnative in java.library.path; Tomcat's log says what became of them";
        }
        if (!apr && !isWithoutOpenSsl() && !tlsGuarded) {
            return "the TLS of " + labels.base + " is guarded on its workers alone, not on the poller and on"
                    + " application threads: this Tomcat does it in a way that sslsweep does not know. Please report its version";
        }
        return null;
    }

    void beforeInit() {
        if (bindsOnInit()) {
            // The channel group of NIO2 is made with the executor that is there when the port is bound.
            if (nio2) {
                hookExecutor();
            }
            beforeBind();
        }
    }

    void afterInit() {
        if (bindsOnInit()) {
            afterBind();
        }
    }

    void beforeStart() {
        hookExecutor();
        if (!bindsOnInit()) {
            beforeBind();
        }
    }

    void afterStart() {
        afterBind();
    }

    /** The connector is bound, or runs, and nobody told us before. */
    void hookLate() {
        Executor there = handler.getExecutor();
        bound = bindsOnInit() || connector.getState().isAvailable();
        // Whose it is shows in the endpoint alone; an embedder may have handed in a pool of the same class.
        boolean tomcats = there instanceof ThreadPoolExecutor && (endpoint == null || endpoint.hasOwnExecutor());
        if (there != null && !(there instanceof Guarding) && bound && (nio2 || tomcats && endpoint == null)) {
            // NIO2's channel group goes on with it.
            keepsExecutor = true;
            executorReport = "executor not hooked: the connector was bound before sslsweep heard of it";
        } else if (tomcats && !(there instanceof Guarding)) {
            setPool();
            // Those who hold the other still hand it tasks, which must not be refused. Its threads end when idle.
            ((ThreadPoolExecutor) there).setKeepAliveTime(1, TimeUnit.SECONDS);
            ((ThreadPoolExecutor) there).setCorePoolSize(0);
        } else if (there != null) {
            hookExecutor();
        }
        afterBind();
    }

    void afterStop() {
        BINDING.remove();
        // NIO2 works on until the port is given back.
        if (!nio2 || !bindsOnInit()) {
            bound = false;
            endChannelGroup();
            endPool();
        }
    }

    void afterDestroy() {
        BINDING.remove();
        bound = false;
        endChannelGroup();
        endPool();
    }

    /**
     * After a step that failed: the connector gets back what it had before, where it does not work with ours already.
     * Nothing else is called afterwards.
     */
    void takeBack() {
        BINDING.remove();
        giveNameBack();
        if (nio2 ? bound : connector.getState().isAvailable()) {
            return;
        }
        if (wrapped != null && handler.getExecutor() instanceof Guarding) {
            handler.setExecutor(wrapped);
        }
        endPool();
    }

    /** What is hooked, for the log. */
    String report() {
        String engine = "TLS engine" + (tlsGuarded ? "" : " not hooked");
        if (apr) {
            engine = "APR natives";
        } else if (isWithoutOpenSsl()) {
            engine = "TLS not by OpenSSL (" + (tls == null ? "JSSE" : tls) + ")";
        }
        return labels.base + " (" + executorReport + ", " + engine + ")";
    }

    private boolean bindsOnInit() {
        return endpoint != null ? endpoint.bindsOnInit()
                : !"false".equals(String.valueOf(connector.getProperty("bindOnInit")));
    }

    // ---- TLS

    private void beforeBind() {
        BINDING.set(labels);
        binding = true;
        // Ours cannot be shut down from outside, as a group does with its executor at its end.
        endsChannelGroup = nio2 && endpoint != null && !endpoint.hasOwnExecutor()
                && handler.getExecutor() instanceof Guarding;
        // What is in the queue of the thread that starts Tomcat is not this connector's.
        TaskHooks.checkpoint(labels.setUp);
        String guard = TlsChoice.guardOf(tls);
        // By name, Tomcat would call the connector https-jsse-..., in JMX too, when that happens in its initialisation.
        boolean later = TlsChoice.OPENSSL.equals(tls) && bindsOnInit() && endpoint != null && endpoint.canGuardTls();
        if (guard != null && !later && loads(guard)) {
            nameBefore = tls;
            TlsChoice.set(connector, guard);
        }
    }

    private void afterBind() {
        BINDING.remove();
        bound = true;
        if (binding) {
            binding = false;
            // Loading certificates leaves errors even where it succeeds.
            TaskHooks.sweep(labels.setUp);
        }
        if (giveNameBack()) {
            tlsGuarded = true;
        } else if (TlsChoice.guardOf(tls) != null && endpoint != null) {
            tlsGuarded = endpoint.guardTls(labels);
        }
    }

    /** Whether the connector had a name of ours. */
    private boolean giveNameBack() {
        if (nameBefore == null) {
            return false;
        }
        TlsChoice.set(connector, nameBefore);
        nameBefore = null;
        return true;
    }

    /** Whether Tomcat can load a class of ours: it looks with its own class loader. */
    private static boolean loads(String name) {
        try {
            Class<?> found = Class.forName(name, true, AbstractProtocol.class.getClassLoader());
            return found.getClassLoader() == ConnectorHooks.class.getClassLoader();
        } catch (ClassNotFoundException | LinkageError elsewhere) {
            LOG.warn("sslsweep: Tomcat cannot load " + name + ", so that TLS on threads which are no workers stays"
                    + " unguarded. Put the jar of sslsweep where Tomcat's own jars are (the server's lib folder)");
            return false;
        }
    }

    // ---- executor

    private void hookExecutor() {
        Executor there = handler.getExecutor();
        if (there instanceof Guarding) {
            if (there instanceof HygieneExecutor) {
                executorReport = "executor " + ((HygieneExecutor) there).getName();
            } else {
                executorReport = there instanceof WorkerPool ? "executor" : "executor wrapped";
            }
            return;
        }
        if (keepsExecutor && there != null) {
            return;
        }
        if (there != null) {
            hookExecutorOfOthers(there);
        } else if (endpoint != null ? endpoint.usesVirtualThreads() : virtual()) {
            executorReport = "virtual threads";
        } else {
            setPool();
        }
    }

    private void hookExecutorOfOthers(Executor there) {
        if (there.getClass().getName().contains("VirtualThread")) {
            executorReport = "virtual threads";
            return;
        }
        handler.setExecutor(GuardingStandardExecutor.around(there, workerHooks));
        wrapped = there;
        executorReport = "executor wrapped";
        LOG.info("sslsweep: the executor of " + labels.base + " is guarded from outside, which costs an object for"
                + " each task; <Executor className=\"" + HygieneExecutor.class.getName() + "\" ...> does without");
    }

    private void setPool() {
        if (endpoint == null) {
            pool = poolOfPublicFigures();
            handler.setExecutor(pool);
        } else {
            pool = endpoint.newPool(workerHooks, endpoint.nameOr(name()));
            endpoint.setOwnExecutor(pool);
        }
        executorReport = "executor";
    }

    private WorkerPool poolOfPublicFigures() {
        AbstractProtocol<?> figures = (AbstractProtocol<?>) handler;
        int queue = Reflection.number(handler, "getMaxQueueSize", Integer.MAX_VALUE);
        return WorkerPool.start(workerHooks, figures.getMinSpareThreads(), figures.getMaxThreads(), 60_000,
                new TaskQueue(queue), new TaskThreadFactory(name() + "-exec-", true, figures.getThreadPriority()));
    }

    private boolean virtual() {
        return Boolean.parseBoolean(String.valueOf(connector.getProperty("useVirtualThreads")));
    }

    /** Ends our pool, unless Tomcat has done it. */
    private void endPool() {
        ExecutorService ended = pool;
        pool = null;
        if (ended == null || handler.getExecutor() != ended) {
            return;
        }
        handler.setExecutor(null);
        ended.shutdownNow();
        long timeout = endpoint == null ? 5_000 : endpoint.terminationTimeoutMillis();
        try {
            ended.awaitTermination(timeout, TimeUnit.MILLISECONDS);
        } catch (InterruptedException stop) {
            Thread.currentThread().interrupt();
        }
    }

    /** Ends what NIO2 waits for events with, a thread and three descriptors: Tomcat does so for its own pool alone. */
    private void endChannelGroup() {
        if (endsChannelGroup) {
            endsChannelGroup = false;
            endpoint.endChannelGroup();
        }
    }

    private String name() {
        return ObjectName.unquote(((AbstractProtocol<?>) handler).getName());
    }
}
