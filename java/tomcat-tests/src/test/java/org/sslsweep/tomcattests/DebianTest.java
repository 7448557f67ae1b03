package org.sslsweep.tomcattests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Debian's own packages: two copied files and one line. */
class DebianTest {
    private static final String LINE = "<Listener className=\"org.sslsweep.tomcat.HygieneListener\"/>";
    private static final Body SMALL = new Body(4096);
    private static final Body LARGE = new Body(100_000_000);

    /** The server of the bug report: Tomcat 9 with the APR connector and Debian's tcnative 1.2.35. */
    @Test
    void tomcat9WithApr() throws Exception {
        String serverXml = "<Server port=\"-1\">"
                + "<Listener className=\"org.apache.catalina.core.AprLifecycleListener\" SSLEngine=\"on\"/>" + LINE
                + "<Service name=\"Catalina\">" + connector("org.apache.coyote.http11.Http11AprProtocol")
                + "<Engine name=\"Catalina\" defaultHost=\"localhost\"><Host name=\"localhost\" appBase=\"webapps\"/></Engine>"
                + "</Service></Server>";
        try (DebianBase base = DebianBase.make("tomcat-server-9", serverXml)) {
            base.install();
            // Debian 12 has Tomcat 9's jars and no package that starts it.
            Path home = base.home(tomcat9Jars());
            List<String> command = new ArrayList<>(List.of(Folders.java()));
            command.addAll(base.options());
            command.addAll(List.of("-Dcatalina.home=" + home, "-Dcatalina.base=" + base.folder,
                    "-Djava.io.tmpdir=" + base.folder.resolve("temp"), "-cp", home.resolve("bin/bootstrap.jar") + ":" + home.resolve("bin/tomcat-juli.jar"),
                    "org.apache.catalina.startup.Bootstrap", "start"));
            JavaProcess process = base.start(command, Map.of());
            check(base, process, "https-openssl-apr-auto");
        }
    }

    /** Debian's Tomcat 10 refuses Debian's tcnative: TLS is Java's, and servlets may use OpenSSL all the same. */
    @Test
    void tomcat10() throws Exception {
        Path debian = Folders.DEBIAN.resolve("tomcat10/usr/share/tomcat10/etc");
        String serverXml = Files.readString(debian.resolve("server.xml"));
        serverXml = replaced(serverXml, "port=\"8080\"", "port=\"0\"");
        serverXml = replaced(serverXml, "<Service name=\"Catalina\">",
                "<Service name=\"Catalina\">" + connector("org.apache.coyote.http11.Http11NioProtocol"));
        serverXml = replaced(serverXml, "<GlobalNamingResources>", LINE + "<GlobalNamingResources>");
        try (DebianBase base = DebianBase.make("tomcat-server-10", serverXml)) {
            base.install();
            for (String name : List.of("web.xml", "catalina.properties", "context.xml", "tomcat-users.xml")) {
                Files.copy(debian.resolve(name), base.folder.resolve("conf").resolve(name));
            }
            JavaProcess process = base.start(List.of("/usr/share/tomcat10/bin/catalina.sh", "run"),
                    Map.of("CATALINA_HOME", "/usr/share/tomcat10", "CATALINA_BASE", base.folder.toString(),
                            "JAVA_HOME", System.getProperty("java.home"),
                            "CATALINA_OPTS", String.join(" ", base.options())));
            check(base, process, "https-jsse-nio-auto");
        }
    }

    private static void check(DebianBase base, JavaProcess process, String label) throws Exception {
        try {
            try (Management management = Management.of(process)) {
                int port = management.tlsPort();
                management.reset();
                int requests = 20;
                for (int i = 0; i < requests; i++) {
                    try (Connection connection = Connection.open(port)) {
                        assertEquals(SMALL.digest(), connection.put("/put", SMALL));
                        String answer = connection.put("/leave?before=2&during=1&after=2", SMALL);
                        assertEquals(SMALL.digest() + " clean", answer);
                        if (i == 0) {
                            assertEquals(LARGE.digest(), connection.put("/put", LARGE));
                        }
                    }
                }
                assertCounted(management, label, requests * 5);
            }
            assertTrue(process.reports().get(0).contains(" guards " + label + " "), () -> process.reports().toString());
            String maps = Files.readString(Paths.get("/proc/" + process.pid() + "/maps"));
            assertTrue(maps.contains(base.library.toString()), "the library that was copied is not the one in use");
            process.terminate();
            // What a JVM says that was asked to end.
            assertEquals(128 + 15, process.awaitEnd());
            assertEquals(List.of(), process.jni().ours());
        } finally {
            process.kill();
        }
    }

    private static void assertCounted(Management management, String label, int expected) throws Exception {
        Ledger ledger = management.ledger();
        // The answer may be there before the worker's task has ended, and nothing tells from outside when it has.
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(JavaProcess.PATIENCE_SECONDS);
        while (Ledger.count(ledger.leftByServlets(), entry -> true) < expected && System.nanoTime() < until) {
            ledger = management.ledger();
        }
        List<Ledger.Entry> left = ledger.leftByServlets();
        assertEquals(expected, Ledger.count(left, entry -> Ledger.isWorkers(label, entry.label())), ledger::toString);
        assertEquals(expected, Ledger.count(left, entry -> true), ledger::toString);
    }

    private static String connector(String protocol) {
        return "<Connector port=\"0\" address=\"127.0.0.1\" protocol=\"" + protocol + "\" SSLEnabled=\"true\""
                + " scheme=\"https\" secure=\"true\" maxKeepAliveRequests=\"-1\" connectionTimeout=\"120000\">"
                + "<SSLHostConfig><Certificate certificateFile=\"conf/certificate.pem\""
                + " certificateKeyFile=\"conf/key.pem\"/></SSLHostConfig></Connector>";
    }

    private static List<Path> tomcat9Jars() throws IOException {
        try (Stream<Path> jars = Files.list(Paths.get("/usr/share/java"))) {
            return jars.filter(jar -> jar.getFileName().toString().matches("tomcat9-(?!i18n).*-9\\.0\\.\\d+\\.jar")).toList();
        }
    }

    private static String replaced(String text, String what, String by) throws IOException {
        if (!text.contains(what)) {
            throw new IOException("Debian's server.xml has no " + what);
        }
        return text.replaceFirst(Pattern.quote(what), Matcher.quoteReplacement(by));
    }
}
