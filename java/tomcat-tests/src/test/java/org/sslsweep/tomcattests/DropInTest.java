package org.sslsweep.tomcattests;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLSocket;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Unmodified Tomcats with our libtcnative-2.so: what is sent arrives, on one server for all tests of a kind. */
@ParameterizedClass
@EnumSource
class DropInTest {
    private static final List<String> PROTOCOLS = List.of("TLSv1.2", "TLSv1.3");
    private static final Body SMALL = new Body(4096);
    /** Around a record's most bytes, and around what a record takes with all that is about them. */
    private static final long[] LENGTHS = {
        0, 1, 4096, (16 << 10) - 1, 16 << 10, (16 << 10) + 1, (17 << 10) - 1, 17 << 10, (17 << 10) + 1, 1 << 20
    };

    private static Server server;

    @Parameter
    private DropInKind kind;

    @BeforeParameterizedClassInvocation
    static void start(DropInKind kind) throws Exception {
        server = DropIn.start(DropIn.of(kind));
    }

    @AfterParameterizedClassInvocation
    static void end() throws Exception {
        DropIn.end(server);
    }

    @ParameterizedTest
    @ValueSource(strings = {"TLSv1.2", "TLSv1.3"})
    void bodiesArriveWhole(String protocol) throws Exception {
        try (Connection connection = Connection.open(server.port(), protocol)) {
            for (long length : LENGTHS) {
                Body body = new Body(length);
                assertEquals(body.digest(), connection.put("/put", body));
                assertArrayEquals(bytes(body), connection.exchange("/back", body), () -> length + " bytes back");
            }
        }
    }

    @Test
    void aLargeBodyArrivesWhole() throws Exception {
        Body large = new Body(100_000_000);
        try (Connection connection = Connection.open(server.port())) {
            assertEquals(SMALL.digest(), connection.put("/put", SMALL));
            assertEquals(large.digest(), connection.put("/put", large));
            assertEquals(SMALL.digest(), connection.put("/put", SMALL));
        }
    }

    @Test
    void http2() throws Exception {
        HttpClient client = HttpClient.newBuilder().sslContext(Connection.context()).version(HttpClient.Version.HTTP_2)
                .build();
        for (long length : LENGTHS) {
            assertBack(new Body(length), client.send(put(length), HttpResponse.BodyHandlers.ofByteArray()));
        }
        List<CompletableFuture<HttpResponse<byte[]>>> streams = new ArrayList<>();
        for (int i = 0; i < 8; i++) {
            streams.add(client.sendAsync(put(300_000 + i), HttpResponse.BodyHandlers.ofByteArray()));
        }
        for (int i = 0; i < streams.size(); i++) {
            assertBack(new Body(300_000 + i), streams.get(i).get(JavaProcess.PATIENCE_SECONDS, TimeUnit.SECONDS));
        }
    }

    private static HttpRequest put(long length) throws IOException {
        return HttpRequest.newBuilder(URI.create("https://127.0.0.1:" + server.port() + "/back"))
                .PUT(HttpRequest.BodyPublishers.ofByteArray(bytes(new Body(length)))).build();
    }

    private static void assertBack(Body body, HttpResponse<byte[]> response) throws IOException {
        assertEquals(HttpClient.Version.HTTP_2, response.version());
        assertEquals(200, response.statusCode());
        assertArrayEquals(bytes(body), response.body());
    }

    @Test
    void webSocket() throws Exception {
        String large = "0123456789abcdef".repeat(500);
        try (Echo echo = Echo.open(server.port())) {
            for (int i = 0; i < 25; i++) {
                assertEquals("message " + i, echo.exchange("message " + i));
                assertEquals(large, echo.exchange(large));
            }
        }
    }

    @Test
    void manyConnectionsAtOnce() throws Exception {
        Body body = new Body((17 << 10) + 1);
        atOnce(6, () -> {
            for (int i = 0; i < 10; i++) {
                try (Connection connection = Connection.open(server.port(), PROTOCOLS.get(i % 2))) {
                    assertEquals(body.digest(), connection.put("/put", body));
                    assertArrayEquals(bytes(body), connection.exchange("/back", body));
                }
            }
            return null;
        });
    }

    /** Errors that servlets leave in OpenSSL's queue meet nobody, nor does what clients do wrong. */
    @Test
    void aHealthyConnectionSurvivesItsNeighbours() throws Exception {
        try (Connection healthy = Connection.open(server.port()); Connection neighbour = Connection.open(server.port())) {
            for (int i = 0; i < 40; i++) {
                TomcatTest.garbage(server.port(), i);
                brokenRecord(PROTOCOLS.get(i % 2));
                neighbour.put("/leave?before=1&during=2&after=15", SMALL);
                String answer = healthy.put("/leave", SMALL);
                // The C library does not sweep before a servlet begins.
                assertEquals(SMALL.digest() + " clean", DropIn.isOurs() ? answer : answer.replace("dirty", "clean"));
            }
        }
    }

    /** What is no record of the connection, after an answer: in the midst of a handshake Tomcat may overlook it. */
    private static void brokenRecord(String protocol) throws IOException {
        byte[] record = new byte[5 + 64];
        System.arraycopy(new byte[] {23, 3, 3, 0, 64}, 0, record, 0, 5);
        try (Socket plain = new Socket("127.0.0.1", server.port());
                SSLSocket socket = (SSLSocket) Connection.context().getSocketFactory()
                        .createSocket(plain, "localhost", server.port(), false)) {
            socket.setEnabledProtocols(new String[] {protocol});
            plain.setSoTimeout((int) TimeUnit.SECONDS.toMillis(JavaProcess.PATIENCE_SECONDS));
            socket.getOutputStream().write("GET /tls HTTP/1.1\r\nHost: localhost\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
            assertEquals('H', socket.getInputStream().read());
            plain.getOutputStream().write(record);
            while (plain.getInputStream().read() >= 0) {
                // Tickets and an alert, before it closes.
            }
        } catch (IOException reset) {
            // That is a way to close, too.
        }
    }

    @Test
    void javaResumesASession() throws Exception {
        SSLContext context = Connection.context();
        Set<Long> sessions = new HashSet<>();
        for (int i = 0; i < 3; i++) {
            try (Connection connection = Connection.open(server.port(), "TLSv1.2", "localhost", context)) {
                assertEquals(SMALL.digest(), connection.put("/put", SMALL));
                sessions.add(connection.session().getCreationTime());
            }
            Thread.sleep(2);
        }
        assertEquals(1, sessions.size(), sessions::toString);
    }

    @ParameterizedTest
    @ValueSource(strings = {"-tls1_3", "-tls1_2"})
    void opensslResumesASession(String protocol, @TempDir Path folder) throws Exception {
        String file = folder.resolve("session.pem").toString();
        String first = sClient(protocol + " -sess_out " + file);
        assertTrue(first.contains("\nNew, TLSv1."), first);
        assertTrue(first.contains("Verify return code: 0 (ok)"), first);
        assertTrue(first.contains("protocol=" + (protocol.equals("-tls1_3") ? "TLSv1.3" : "TLSv1.2")), first);
        String second = sClient(protocol + " -sess_in " + file);
        assertTrue(second.contains("\nReused, TLSv1."), second);
        assertTrue(second.contains("http=HTTP/1.1"), second);
    }

    /** What it and the server say. */
    private static String sClient(String options) throws Exception {
        List<String> command = new ArrayList<>(List.of("openssl", "s_client", "-connect", "127.0.0.1:" + server.port(),
                "-CAfile", server.base().resolve("certificate.pem").toString(), "-ign_eof"));
        command.addAll(List.of(options.split(" ")));
        return DropInTool.run("GET /tls HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", command);
    }

    @ParameterizedTest
    @ValueSource(strings = {"--http1.1 --tls-max 1.2", "--http1.1 --tlsv1.3", "--http2 --tlsv1.3"})
    void curl(String options, @TempDir Path folder) throws Exception {
        Body body = new Body(300_001);
        Path file = folder.resolve("body");
        Files.write(file, bytes(body));
        assertEquals(body.digest(), curl(options + " --upload-file " + file, "/put"));
        String expected = options.contains("http2") ? "http=HTTP/2" : "http=HTTP/1.1";
        String said = curl(options, "/tls");
        assertTrue(said.contains(expected), said);
    }

    private static String curl(String options, String path) throws Exception {
        List<String> command = new ArrayList<>(List.of("curl", "--silent", "--show-error", "--fail", "--max-time", "60",
                "--cacert", server.base().resolve("certificate.pem").toString()));
        command.addAll(List.of(options.split(" ")));
        command.add("https://127.0.0.1:" + server.port() + path);
        return DropInTool.run("", command);
    }

    private static byte[] bytes(Body body) throws IOException {
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        body.writeTo(out);
        return out.toByteArray();
    }

    private static void atOnce(int threads, Callable<Void> task) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(threads);
        try {
            List<Future<Void>> running = new ArrayList<>();
            for (int i = 0; i < threads; i++) {
                running.add(pool.submit(task));
            }
            for (Future<Void> future : running) {
                future.get(JavaProcess.PATIENCE_SECONDS, TimeUnit.SECONDS);
            }
        } finally {
            pool.shutdownNow();
        }
    }
}
