package org.sslsweep.tomcattests;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;

/** The OCSP responder of the tests' authority: its answers are those of {@code openssl ocsp}. */
final class DropInResponder implements AutoCloseable {
    private final HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
    private final AtomicInteger asked = new AtomicInteger();

    DropInResponder() throws IOException {
        server.start();
    }

    /** The address that certificates name. */
    String address() {
        return "http://127.0.0.1:" + server.getAddress().getPort() + "/";
    }

    /** How often it was asked. */
    int asked() {
        return asked.get();
    }

    /** Begins to answer for an authority. */
    void answerFor(DropInPki pki) {
        server.createContext("/", exchange -> answer(pki, exchange));
    }

    private void answer(DropInPki pki, HttpExchange exchange) throws IOException {
        int number = asked.incrementAndGet();
        Path request = pki.folder.resolve("ocsp-" + number + ".request");
        Path response = pki.folder.resolve("ocsp-" + number + ".response");
        Files.write(request, exchange.getRequestBody().readAllBytes());
        try (exchange) {
            pki.openssl("ocsp", "-index", pki.file("index.txt"), "-CA", pki.file("ca.pem"), "-rsigner", pki.file("ca.pem"),
                    "-rkey", pki.file("ca.key"), "-reqin", request.toString(), "-respout", response.toString());
            byte[] bytes = Files.readAllBytes(response);
            exchange.getResponseHeaders().add("Content-Type", "application/ocsp-response");
            exchange.sendResponseHeaders(200, bytes.length);
            exchange.getResponseBody().write(bytes);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public void close() {
        server.stop(0);
    }
}
