package org.sslsweep.example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.test.autoconfigure.actuate.observability.AutoConfigureObservability;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.context.DynamicPropertyRegistry;
import org.springframework.test.context.DynamicPropertySource;

/** The example over real TLS, by OpenSSL. */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
@AutoConfigureObservability
class ApplicationTest {
    private static final String PASSWORD = "changeit";

    @TempDir
    private static Path folder;

    @LocalServerPort
    private int port;

    @BeforeAll
    static void makeKey() throws Exception {
        String keytool = Path.of(System.getProperty("java.home"), "bin", "keytool").toString();
        Process made = new ProcessBuilder(List.of(keytool, "-genkeypair", "-alias", "server", "-keyalg", "EC",
                        "-dname", "CN=localhost", "-ext", "SAN=dns:localhost", "-storetype", "PKCS12",
                        "-keystore", folder.resolve("server.p12").toString(), "-storepass", PASSWORD))
                .inheritIO()
                .start();
        assertEquals(0, made.waitFor(), "keytool");
    }

    @DynamicPropertySource
    static void useKey(DynamicPropertyRegistry registry) {
        registry.add("server.ssl.key-store", () -> "file:" + folder.resolve("server.p12"));
        registry.add("server.ssl.key-store-password", () -> PASSWORD);
    }

    @Test
    void whatTasksLeaveIsAtThePrometheusEndpoint() throws Exception {
        HttpClient client = HttpClient.newBuilder().sslContext(trusting()).build();
        URI server = URI.create("https://localhost:" + port);
        for (int request = 0; request < 10; request++) {
            HttpRequest put = HttpRequest.newBuilder(server.resolve("/put"))
                    .header("Content-Type", "application/octet-stream")
                    .PUT(BodyPublishers.ofByteArray(new byte[4096]))
                    .build();
            assertEquals("4096", client.send(put, BodyHandlers.ofString()).body());
        }
        talkPlainText();

        HttpRequest scrape = HttpRequest.newBuilder(server.resolve("/actuator/prometheus")).build();
        // The first scrape finds the labels, and the second has their meters.
        client.send(scrape, BodyHandlers.discarding());
        String figures = client.send(scrape, BodyHandlers.ofString()).body();
        // A task is not a request: several that come at once are one.
        assertTrue(count(figures, "sslsweep_tasks_total", "https-openssl-nio-auto/read") > 0, figures);
        assertTrue(count(figures, "sslsweep_tasks_total", "https-openssl-nio-auto/handshake") > 0, figures);
    }

    /** Speaks HTTP to the TLS port, and waits until the server has hung up. */
    private void talkPlainText() throws Exception {
        try (Socket socket = new Socket("localhost", port)) {
            OutputStream to = socket.getOutputStream();
            to.write("GET / HTTP/1.0\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
            to.flush();
            socket.getInputStream().readAllBytes();
        }
    }

    /** The sum of a metric over the labels that contain a text. */
    private static double count(String figures, String metric, String label) {
        Matcher line = Pattern.compile("^" + metric + "\\{[^}]*label=\"[^\"]*" + label + "[^}]*} ([0-9.E]+)$",
                        Pattern.MULTILINE)
                .matcher(figures);
        return line.results().mapToDouble(found -> Double.parseDouble(found.group(1))).sum();
    }

    private static SSLContext trusting() throws Exception {
        KeyStore store = KeyStore.getInstance("PKCS12");
        try (InputStream from = Files.newInputStream(folder.resolve("server.p12"))) {
            store.load(from, PASSWORD.toCharArray());
        }
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        trusted.setCertificateEntry("server", store.getCertificate("server"));
        TrustManagerFactory factory = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        factory.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, factory.getTrustManagers(), null);
        return context;
    }
}
