package org.sslsweep.testserver;

import java.lang.reflect.Method;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.function.BiConsumer;
import javax.servlet.Servlet;
import org.apache.catalina.Context;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.LifecycleListener;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.core.AprLifecycleListener;
import org.apache.catalina.startup.Tomcat;
import org.apache.catalina.util.ServerInfo;
import org.apache.coyote.AbstractProtocol;
import org.apache.coyote.http11.AbstractHttp11Protocol;
import org.apache.coyote.http2.Http2Protocol;
import org.apache.tomcat.util.net.SSLHostConfigCertificate;
import org.apache.tomcat.util.threads.ThreadPoolExecutor;
import org.apache.tomcat.websocket.server.WsSci;

/** One Tomcat, from its start to its end. */
final class Instance {
    private static final String HYGIENE = "org.sslsweep.tomcat.HygieneListener";

    private final Options options;
    private final Tomcat tomcat = new Tomcat();
    private final Connector connector;
    private final ApplicationThread application = new ApplicationThread();

    private Instance(Options options, BiConsumer<Instance, Context> application) throws Exception {
        this.options = options;
        Path base = Files.createTempDirectory(options.base, "tomcat");
        tomcat.setBaseDir(base.toString());
        if (options.tls.loader != null) {
            tomcat.getServer().addLifecycleListener(listener(options.tls.loader, Map.of()));
        }
        if (options.listener != null) {
            tomcat.getServer().addLifecycleListener(listener(HYGIENE, options.listener));
        }
        connector = connector();
        tomcat.setConnector(connector);
        application.accept(this, tomcat.addContext("", base.toString()));
    }

    /** Starts one. Throws when TLS is not done as the options say. */
    static Instance start(Options options) throws Exception {
        return start(options, Instance::addApplication);
    }

    /** Starts one with another application. */
    static Instance start(Options options, BiConsumer<Instance, Context> application) throws Exception {
        Instance instance = new Instance(options, application);
        instance.tomcat.start();
        instance.check();
        return instance;
    }

    void stop() throws LifecycleException {
        application.end();
        tomcat.stop();
        tomcat.destroy();
    }

    /** Has all certificates read again. Connections that are there keep what they have. */
    void reload() {
        ((AbstractHttp11Protocol<?>) connector.getProtocolHandler()).reloadSslHostConfigs();
    }

    int port() {
        return connector.getLocalPort();
    }

    /** What there is to say about it, as members of a JSON object. */
    String facts() {
        return "\"port\":" + port() + ",\"tomcat\":" + Json.quote(ServerInfo.getServerNumber())
                + ",\"handler\":" + Json.quote(protocol().getName()) + ",\"tls\":" + Json.quote(tls());
    }

    /** The connector's own thread pool; null where it has none. */
    ThreadPoolExecutor pool() {
        Executor executor = protocol().getExecutor();
        return executor instanceof ThreadPoolExecutor ? (ThreadPoolExecutor) executor : null;
    }

    private static LifecycleListener listener(String className, Map<String, String> attributes)
            throws ReflectiveOperationException {
        Object listener = Class.forName(className).getConstructor().newInstance();
        attributes.forEach((name, value) -> Options.set(listener, name, value));
        return (LifecycleListener) listener;
    }

    private Connector connector() {
        Connector made = new Connector(options.protocol());
        made.setPort(0);
        made.setScheme("https");
        made.setSecure(true);
        made.setThrowOnFailure(true);
        Options.set(made, "SSLEnabled", "true");
        Options.set(made, "address", "127.0.0.1");
        // A connection may wait for its turn as long as a slow machine takes.
        Options.set(made, "connectionTimeout", "120000");
        Options.set(made, "maxKeepAliveRequests", "-1");
        if (!options.connector.equals("apr") && !options.automatic) {
            Options.set(made, "sslImplementationName", options.tls.implementation);
        }
        options.attributes.forEach((name, value) -> Options.set(made, name, value));
        if (options.http2) {
            Http2Protocol http2 = new Http2Protocol();
            // Java's client divides bodies into frames that are taken for an attack where they happen to be small.
            http2.setOverheadDataThreshold(0);
            http2.setOverheadWindowUpdateThreshold(0);
            made.addUpgradeProtocol(http2);
        }
        TlsHosts.add(made, options);
        return made;
    }

    private void addApplication(Context context) {
        add(context, "/put", new PutServlet());
        add(context, "/back", new BackServlet());
        add(context, "/tls", new TlsServlet());
        context.getPipeline().addValve(new AskValve());
        add(context, "/leave", new LeaveServlet());
        add(context, "/async", new AsyncServlet(application));
        // WebSocket's filter is asked only where some servlet would answer.
        add(context, "/", new PutServlet());
        ApplicationConfigurator.use(application);
        context.addServletContainerInitializer(new WsSci(), Set.of(EchoEndpoint.class));
    }

    // Tomcat 11 deprecates the mapping and keeps it.
    @SuppressWarnings("deprecation")
    static void add(Context context, String path, Servlet servlet) {
        Tomcat.addServlet(context, path, servlet).setAsyncSupported(true);
        context.addServletMappingDecoded(path, path);
    }

    AbstractProtocol<?> protocol() {
        return (AbstractProtocol<?>) connector.getProtocolHandler();
    }

    private void check() {
        boolean jsse = tls().contains(".jsse.");
        if (options.tls == Options.Tls.OPENSSL && !AprLifecycleListener.isAprAvailable()) {
            throw new IllegalStateException("tcnative is not loaded");
        }
        if (jsse != (options.tls == Options.Tls.JSSE)) {
            throw new IllegalStateException("asked for " + options.tls + ", got " + tls());
        }
    }

    /** The class that makes the connector's TLS engines. */
    private String tls() {
        if (options.connector.equals("apr")) {
            // It has no engines of Java, and does not start without tcnative.
            return options.protocol();
        }
        SSLHostConfigCertificate certificate =
                protocol().findSslHostConfigs()[0].getCertificates().iterator().next();
        try {
            Object context = getter("getSslContextGenerated", "getSslContext").invoke(certificate);
            return context == null ? "no context" : context.getClass().getName();
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    /** The first of these that this Tomcat has: the later one is what earlier releases have. */
    private static Method getter(String name, String before) throws NoSuchMethodException {
        try {
            return SSLHostConfigCertificate.class.getMethod(name);
        } catch (NoSuchMethodException e) {
            return SSLHostConfigCertificate.class.getMethod(before);
        }
    }
}
