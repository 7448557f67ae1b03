package org.sslsweep.tomcattests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.cert.X509Certificate;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLHandshakeException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Unmodified Tomcats with our libtcnative-2.so: certificates of servers and clients, hosts, and what an operator sets up. */
@ParameterizedClass
@EnumSource
class DropInTlsTest {
    private static final Body SMALL = new Body(4096);

    private static DropInPki pki;
    private static Server server;
    private static DropInResponder responder;

    @Parameter
    private DropInKind kind;

    @BeforeParameterizedClassInvocation
    static void start(DropInKind kind, @TempDir Path folder) throws Exception {
        responder = new DropInResponder();
        pki = DropInPki.make(folder, responder.address());
        responder.answerFor(pki);
        String file = pki.files("undefined", "rsa") + ",caCertificateFile:" + pki.file("ca.pem");
        String manager = pki.files("undefined", "rsa") + ",truststoreFile:" + pki.file("trust.p12")
                + ",truststoreType:PKCS12,truststorePassword:" + DropInPki.PASSWORD;
        server = DropIn.start(DropIn.of(kind)
                .option("--host.both.test=" + pki.files("rsa", "rsa") + "," + pki.files("ec", "ec"))
                .option("--host.chain.test=undefined.certificateFile:" + pki.file("chained.pem")
                        + ",undefined.certificateKeyFile:" + pki.file("chained.locked.key")
                        + ",undefined.certificateKeyPassword:" + DropInPki.PASSWORD
                        + ",undefined.certificateChainFile:" + pki.file("middle.pem"))
                // Some Tomcats read the key in Java, and know no such key; OpenSSL's own command gives it past them.
                .option("--host.edwards.test=" + pki.files("undefined", "rsa") + ",conf.Certificate:" + pki.file("edwards.pem")
                        + ",conf.PrivateKey:" + pki.file("edwards.key"))
                .option("--host.store.test=undefined.certificateKeystoreFile:" + pki.file("rsa.p12")
                        + ",undefined.certificateKeystoreType:PKCS12,undefined.certificateKeystorePassword:"
                        + DropInPki.PASSWORD)
                .option("--host.renewed.test=" + pki.files("undefined", "renewable"))
                .option("--host.cache.test=" + pki.files("undefined", "rsa") + ",sessionCacheSize:100")
                .option("--host.conf.test=" + pki.files("undefined", "rsa")
                        + ",conf.MaxProtocol:TLSv1.2,conf.CipherString:ECDHE-RSA-AES256-GCM-SHA384")
                .option("--host.renegotiate.test=" + pki.files("undefined", "rsa") + ",conf.Options:ClientRenegotiation")
                .option("--host.file.test=" + file + ",certificateVerification:required,certificateRevocationListFile:"
                        + pki.file("ca.crl"))
                .option("--host.responder.test=" + file
                        + ",certificateVerification:required,conf.NO_OCSP_CHECK:false,conf.OCSP_SOFT_FAIL:false")
                .option("--host.manager.test=" + manager + ",certificateVerification:required")
                .option("--host.optional.test=" + file + ",certificateVerification:optional")
                .option("--host.fileask.test=" + file)
                .option("--host.managerask.test=" + manager));
    }

    @AfterParameterizedClassInvocation
    static void end() throws Exception {
        responder.close();
        DropIn.end(server);
    }

    @ParameterizedTest
    @CsvSource({
        "both.test, TLSv1.2, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, CN=rsa, 1",
        "both.test, TLSv1.2, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, CN=ec, 1",
        "chain.test, TLSv1.2, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, CN=chained, 2",
        "chain.test, TLSv1.3, TLS_AES_256_GCM_SHA384, CN=chained, 2",
        "edwards.test, TLSv1.3, TLS_CHACHA20_POLY1305_SHA256, CN=edwards, 1",
        "store.test, TLSv1.3, TLS_AES_256_GCM_SHA384, CN=rsa, 2",
        "unknown.test, TLSv1.3, TLS_AES_256_GCM_SHA384, CN=localhost, 1",
    })
    void theNameChoosesTheCertificate(String host, String protocol, String cipher, String subject, int chain)
            throws Exception {
        try (Connection connection = Connection.open(server.port(), parameters -> {
            parameters.setProtocols(new String[] {protocol});
            parameters.setCipherSuites(new String[] {cipher});
        }, host, pki.clientContext(null))) {
            assertEquals(SMALL.digest(), connection.put("/put", SMALL));
            assertEquals(subject, subject(connection));
            assertEquals(chain, connection.session().getPeerCertificates().length);
            String said = tls(connection, "/tls");
            assertTrue(said.contains("protocol=" + protocol), said);
            assertTrue(said.contains("cipher=" + cipher + "\n"), said);
        }
    }

    @Test
    void commandsOfOpenSslConfHold() throws Exception {
        try (Connection connection = open("conf.test", null, "TLSv1.2", "TLSv1.3")) {
            String said = tls(connection, "/tls");
            assertTrue(said.contains("cipher=TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384\nbits=256\n"), said);
        }
        assertThrows(SSLHandshakeException.class, () -> open("conf.test", null, "TLSv1.3"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"TLSv1.2", "TLSv1.3"})
    void respondersAreAskedWhereOpenSslConfSaysSo(String protocol) throws Exception {
        int before = responder.asked();
        try (Connection connection = open("responder.test", "listed", protocol)) {
            assertEquals(SMALL.digest(), connection.put("/put", SMALL));
        }
        assertThrows(IOException.class, () -> {
            try (Connection connection = open("responder.test", "withdrawn", protocol)) {
                connection.get("/tls");
            }
        });
        assertEquals(before + 2, responder.asked());
        // Elsewhere nobody asks.
        try (Connection connection = open("optional.test", "withdrawn", protocol)) {
            assertEquals(SMALL.digest(), connection.put("/put", SMALL));
        }
        assertEquals(before + 2, responder.asked());
    }

    @ParameterizedTest
    @CsvSource({"file.test, TLSv1.2", "file.test, TLSv1.3", "manager.test, TLSv1.2", "manager.test, TLSv1.3"})
    void clientsShowCertificates(String host, String protocol) throws Exception {
        try (Connection connection = open(host, "client", protocol)) {
            assertEquals(SMALL.digest(), connection.put("/put", SMALL));
            String said = tls(connection, "/tls");
            assertTrue(said.contains("client=CN=client\n"), said);
        }
        // Java's trust manager has no list of what is revoked.
        for (String wrong : host.equals("file.test") ? List.of("", "stranger", "revoked") : List.of("", "stranger")) {
            assertThrows(IOException.class, () -> {
                try (Connection connection = open(host, wrong.isEmpty() ? null : wrong, protocol)) {
                    // In TLS 1.3 the client learns that it is refused from what it reads.
                    connection.get("/tls");
                }
            }, wrong);
        }
        try (Connection connection = open(host, "client", protocol)) {
            assertEquals(SMALL.digest(), connection.put("/put", SMALL));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"TLSv1.2", "TLSv1.3"})
    void aCertificateMayBeOptional(String protocol) throws Exception {
        try (Connection with = open("optional.test", "client", protocol);
                Connection without = open("optional.test", null, protocol)) {
            assertTrue(tls(with, "/tls").contains("client=CN=client\n"));
            assertTrue(!tls(without, "/tls").contains("client="));
        }
        // Java's client sends none that the server would not know.
        String refused = sClientRefused("optional.test", List.of(protocol.equals("TLSv1.2") ? "-tls1_2" : "-tls1_3", "-ign_eof",
                "-cert", pki.file("stranger.pem"), "-key", pki.file("stranger.key")), "/tls");
        assertTrue(refused.contains("alert unknown ca"), refused);
    }

    /** The server asks in the middle of a connection: in TLS 1.2 it renegotiates. */
    @ParameterizedTest
    @ValueSource(strings = {"fileask.test", "managerask.test"})
    void theServerRenegotiatesForACertificate(String host) throws Exception {
        try (Connection connection = open(host, "client", "TLSv1.2")) {
            String before = tls(connection, "/tls");
            assertTrue(!before.contains("client="), before);
            String said = tls(connection, "/tls?ask");
            assertTrue(said.contains("client=CN=client\n"), said);
            assertEquals(SMALL.digest(), connection.put("/put", SMALL));
        }
    }

    /** In TLS 1.3 it is post-handshake authentication, which Java's client has not. */
    @ParameterizedTest
    @ValueSource(strings = {"fileask.test", "managerask.test"})
    void theServerAsksForACertificateAfterTheHandshake(String host) throws Exception {
        List<String> options = List.of("-tls1_3", "-enable_pha", "-ign_eof", "-cert", pki.file("client.pem"), "-key",
                pki.file("client.key"));
        if (kind.asksAfterTheHandshake()) {
            String said = sClient(host, options, "/tls", "/tls?ask");
            assertEquals(2, said.split("http=HTTP/1.1\n", -1).length - 1, said);
            assertEquals(1, said.split("client=CN=client\n", -1).length - 1, said);
        } else {
            // It would wait for ever, with the C library too: nothing to hold us to.
            String said = sClient(host, options, "/tls");
            assertEquals(1, said.split("http=HTTP/1.1\n", -1).length - 1, said);
            assertTrue(!said.contains("client="), said);
        }
    }

    /**
     * Tomcat has no way to send what OpenSSL answers, and so no client renegotiates, whether it may
     * ({@code ClientRenegotiation}) or not, as it is with the C library.
     */
    @ParameterizedTest
    @ValueSource(strings = {"renegotiate.test", "both.test"})
    void noClientRenegotiates(String host) throws Exception {
        try (Connection connection = open(host, null, "TLSv1.2")) {
            assertEquals(SMALL.digest(), connection.put("/put", SMALL));
            assertThrows(IOException.class, () -> {
                connection.handshakeAgain();
                connection.put("/put", SMALL);
                connection.put("/put", SMALL);
            });
        }
        try (Connection connection = open(host, null, "TLSv1.2")) {
            assertEquals(SMALL.digest(), connection.put("/put", SMALL));
        }
    }

    @Test
    void aSessionIsResumedByItsId(@TempDir Path folder) throws Exception {
        String file = folder.resolve("session.pem").toString();
        List<String> options = List.of("-tls1_2", "-no_ticket", "-ign_eof");
        String first = sClient("cache.test", with(options, "-sess_out", file), "/tls");
        assertTrue(first.contains("\nNew, TLSv1.2"), first);
        String second = sClient("cache.test", with(options, "-sess_in", file), "/tls");
        assertTrue(second.contains("\nReused, TLSv1.2"), second);
    }

    /** Connections come and go meanwhile, and none fails. */
    @Test
    void certificatesAreRenewedUnderLoad() throws Exception {
        AtomicBoolean ended = new AtomicBoolean();
        ExecutorService clients = Executors.newFixedThreadPool(3);
        try {
            List<Future<Integer>> running = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                running.add(clients.submit(() -> {
                    int connections = 0;
                    while (!ended.get()) {
                        try (Connection connection = open("renewed.test", null, "TLSv1.2", "TLSv1.3")) {
                            assertEquals(SMALL.digest(), connection.put("/put", SMALL));
                            assertEquals(SMALL.digest(), connection.put("/put", SMALL));
                            connections++;
                        }
                    }
                    return connections;
                }));
            }
            try (Connection before = open("renewed.test", null, "TLSv1.3")) {
                assertEquals("CN=rsa", subject(before));
                for (int i = 0; i < 10; i++) {
                    String now = i % 2 == 0 ? "renewed" : "rsa";
                    pki.replace("renewable", now);
                    server.order("reload");
                    try (Connection after = open("renewed.test", null, "TLSv1.3")) {
                        assertEquals("CN=" + now, subject(after));
                    }
                }
                assertEquals(SMALL.digest(), before.put("/put", SMALL));
            }
            ended.set(true);
            for (Future<Integer> client : running) {
                assertTrue(client.get(JavaProcess.PATIENCE_SECONDS, TimeUnit.SECONDS) > 0);
            }
        } finally {
            ended.set(true);
            clients.shutdownNow();
        }
    }

    private static Connection open(String host, String certificate, String... protocols) throws IOException {
        SSLContext context = pki.clientContext(certificate);
        return Connection.open(server.port(), parameters -> parameters.setProtocols(protocols), host, context);
    }

    private static String subject(Connection connection) throws IOException {
        return ((X509Certificate) connection.session().getPeerCertificates()[0]).getSubjectX500Principal().getName();
    }

    private static String tls(Connection connection, String path) throws IOException {
        return new String(connection.get(path), StandardCharsets.UTF_8);
    }

    /** What it and the server say to GETs on one connection. */
    private static String sClient(String host, List<String> options, String... paths) throws Exception {
        return DropInTool.run(requests(host, paths), sClientCommand(host, options));
    }

    /** As {@link #sClient}, where the server ends the connection with an alert. */
    private static String sClientRefused(String host, List<String> options, String... paths) throws Exception {
        DropInTool.Result result = DropInTool.attempt(requests(host, paths), sClientCommand(host, options));
        assertEquals(1, result.code(), result.output());
        return result.output();
    }

    private static List<String> sClientCommand(String host, List<String> options) {
        List<String> command = new ArrayList<>(List.of("openssl", "s_client", "-connect", "127.0.0.1:" + server.port(),
                "-servername", host, "-CAfile", pki.file("ca.pem"), "-verify_return_error"));
        command.addAll(options);
        return command;
    }

    private static String requests(String host, String... paths) {
        StringBuilder requests = new StringBuilder();
        for (int i = 0; i < paths.length; i++) {
            String last = i == paths.length - 1 ? "Connection: close\r\n" : "";
            requests.append("GET ").append(paths[i]).append(" HTTP/1.1\r\nHost: ").append(host).append("\r\n").append(last)
                    .append("\r\n");
        }
        return requests.toString();
    }

    private static List<String> with(List<String> first, String... rest) {
        List<String> all = new ArrayList<>(first);
        all.addAll(List.of(rest));
        return all;
    }
}
