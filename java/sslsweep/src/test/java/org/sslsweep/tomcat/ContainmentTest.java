package org.sslsweep.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.security.cert.X509Certificate;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executor;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import javax.net.ssl.X509TrustManager;
import org.apache.catalina.Engine;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.Pipeline;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.core.StandardEngine;
import org.apache.catalina.startup.Tomcat;
import org.apache.coyote.http11.Http11AprProtocol;
import org.apache.coyote.http11.Http11Nio2Protocol;
import org.apache.coyote.http11.Http11NioProtocol;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What fails in a hook of ours fails neither connector nor server. */
class ContainmentTest {
    @TempDir
    static Path base;
    private static final String PASSWORD = "changeit";

    private final Logger logger = Logger.getLogger(HygieneListener.class.getName());
    private final List<String> log = new CopyOnWriteArrayList<>();
    private final Handler recorder = new Handler() {
        @Override
        public void publish(LogRecord line) {
            log.add(line.getMessage());
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    };
    private final Tomcat tomcat = new Tomcat();
    /** The method of {@link ConnectorHooks} or the listener in which Tomcat fails; null: in none. */
    private static volatile String broken;
    private static volatile boolean linkage;

    @BeforeAll
    static void makeCertificate() throws Exception {
        Process keytool = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "keytool").toString(),
                "-genkeypair", "-alias", "tomcat", "-keyalg", "EC", "-dname", "CN=localhost", "-storepass", PASSWORD,
                "-keystore", base.resolve("keys").toString()).inheritIO().start();
        assertEquals(0, keytool.waitFor());
    }

    @BeforeEach
    void record() {
        logger.addHandler(recorder);
    }

    @AfterEach
    void end() throws LifecycleException {
        broken = null;
        logger.removeHandler(recorder);
        if (tomcat.getServer().getState().isAvailable()) {
            tomcat.stop();
        }
        tomcat.destroy();
    }

    private static void failWhereBroken() {
        String method = broken;
        if (method == null || StackWalker.getInstance().walk(frames -> frames.noneMatch(frame ->
                List.of(ConnectorHooks.class.getName(), HygieneListener.class.getName()).contains(frame.getClassName())
                        && frame.getMethodName().equals(method)))) {
            return;
        }
        if (linkage) {
            throw new NoSuchMethodError("another Tomcat's");
        }
        throw new IllegalStateException("another Tomcat's");
    }

    public static final class BrokenNio extends Http11NioProtocol {
        @Override
        public Executor getExecutor() {
            failWhereBroken();
            return super.getExecutor();
        }

        @Override
        public String getName() {
            failWhereBroken();
            return super.getName();
        }
    }

    public static final class BrokenNio2 extends Http11Nio2Protocol {
        @Override
        public Executor getExecutor() {
            failWhereBroken();
            return super.getExecutor();
        }

        @Override
        public String getName() {
            failWhereBroken();
            return super.getName();
        }
    }

    /** As far as our hooks see one of APR; it serves nothing, as that takes the genuine library. */
    @SuppressWarnings("deprecation") // Tomcat 10.1 has it no more
    public static final class SilentApr extends Http11AprProtocol {
        @Override
        public void init() {}

        @Override
        public void start() {}

        @Override
        public void pause() {}

        @Override
        public void stop() {}

        @Override
        public void destroy() {}
    }

    private static final class BrokenEngine extends StandardEngine {
        @Override
        public Pipeline getPipeline() {
            failWhereBroken();
            return super.getPipeline();
        }
    }

    private Connector connector(boolean nio2) {
        tomcat.setBaseDir(base.toString());
        Connector connector = new Connector((nio2 ? BrokenNio2.class : BrokenNio.class).getName());
        connector.setPort(0);
        connector.setScheme("https");
        connector.setSecure(true);
        connector.setThrowOnFailure(true);
        connector.setProperty("address", InetAddress.getLoopbackAddress().getHostAddress());
        connector.setProperty("SSLEnabled", "true");
        connector.setProperty("keystoreFile", base.resolve("keys").toString());
        connector.setProperty("keystorePass", PASSWORD);
        tomcat.setConnector(connector);
        tomcat.addContext("", null);
        return connector;
    }

    /** What the connector answers to a request, first line. */
    private static String answer(Connector connector) throws Exception {
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, new TrustManager[] {new X509TrustManager() {
            @Override
            public void checkClientTrusted(X509Certificate[] chain, String type) {}

            @Override
            public void checkServerTrusted(X509Certificate[] chain, String type) {}

            @Override
            public X509Certificate[] getAcceptedIssuers() {
                return new X509Certificate[0];
            }
        }}, new SecureRandom());
        try (Socket socket = context.getSocketFactory().createSocket(InetAddress.getLoopbackAddress(),
                connector.getLocalPort())) {
            socket.getOutputStream().write("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                    .getBytes(StandardCharsets.US_ASCII));
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.ISO_8859_1).split("\r\n")[0];
        }
    }

    private void assertLogged(String what) {
        assertTrue(log.stream().anyMatch(line -> line.contains(what) && line.contains("not guarded")), log.toString());
    }

    @ParameterizedTest
    @CsvSource({"<init>,false,false", "<init>,true,true", "beforeInit,true,false", "beforeStart,false,true",
        "beforeStart,true,false", "setPool,false,false", "setPool,true,true"})
    void aConnectorGoesOnWithout(String where, boolean nio2, boolean linkageError) throws Exception {
        broken = where;
        linkage = linkageError;
        Connector connector = connector(nio2);
        // Tomcat 9's NIO2 has no clean restart while its port stays bound: the stopped acceptor may take the next
        // connection and reset it (2 of 300, with no listener at all; 0 of 900 where the stop gives the port back).
        // Only what fails in the binding before the start needs a port that stays.
        boolean staysBound = nio2 && where.equals("beforeInit");
        connector.setProperty("bindOnInit", String.valueOf(!nio2 || staysBound));
        tomcat.getServer().addLifecycleListener(new HygieneListener());
        tomcat.start();
        assertLogged(connector.toString());
        assertEquals("HTTP/1.1 404 ", answer(connector));
        for (int round = 0; round < 2 && !staysBound; round++) {
            connector.stop();
            connector.start();
            assertEquals("HTTP/1.1 404 ", answer(connector));
        }
        tomcat.stop();
        tomcat.destroy();
    }

    @ParameterizedTest
    @CsvSource({"endPool,false,false", "endPool,false,true"})
    void aConnectorStops(String where, boolean nio2, boolean linkageError) throws Exception {
        Connector connector = connector(nio2);
        tomcat.getServer().addLifecycleListener(new HygieneListener());
        tomcat.start();
        broken = where;
        linkage = linkageError;
        connector.stop();
        assertLogged(connector.toString());
        connector.start();
        assertEquals("HTTP/1.1 404 ", answer(connector));
    }

    @Test
    void anotherConnectorIsGuarded() throws Exception {
        broken = "hookLate";
        linkage = false;
        Connector connector = connector(false);
        Connector other = new Connector();
        other.setPort(0);
        tomcat.getService().addConnector(other);
        tomcat.init();
        tomcat.getServer().addLifecycleListener(new HygieneListener());
        tomcat.start();
        assertLogged(connector.toString());
        assertEquals("HTTP/1.1 404 ", answer(connector));
        assertTrue(List.of(other.findLifecycleListeners()).stream().anyMatch(HygieneListener.class::isInstance));
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anEngineGoesOnWithoutTheValveOfApr(boolean linkageError) throws Exception {
        broken = "addValve";
        linkage = linkageError;
        Engine engine = new BrokenEngine();
        engine.setName("broken");
        tomcat.getService().setContainer(engine);
        engine.setDefaultHost("localhost");
        Connector connector = connector(false);
        Connector apr = new Connector(SilentApr.class.getName());
        apr.setPort(0);
        apr.setProperty("SSLEnabled", "true");
        tomcat.getService().addConnector(apr);
        tomcat.getServer().addLifecycleListener(new HygieneListener());
        tomcat.start();
        assertLogged(engine.toString());
        assertEquals("HTTP/1.1 404 ", answer(connector));
    }
}
