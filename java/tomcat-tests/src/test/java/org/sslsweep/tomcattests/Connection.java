package org.sslsweep.tomcattests;

import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import javax.net.ssl.SNIHostName;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSession;
import javax.net.ssl.SSLSocket;

/** One connection of HTTP/1.1 on Java's own TLS: not the library under test. */
final class Connection implements AutoCloseable {
    private final SSLSocket socket;
    private final InputStream in;
    private final OutputStream out;

    private final String host;

    private Connection(SSLSocket socket, String host) throws IOException {
        this.socket = socket;
        this.host = host;
        in = new BufferedInputStream(socket.getInputStream(), 64 * 1024);
        out = socket.getOutputStream();
    }

    /** Connects and shakes hands. */
    static Connection open(int port) throws IOException {
        return open(port, "TLSv1.3");
    }

    static Connection open(int port, String protocol) throws IOException {
        return open(port, protocol, "localhost", context());
    }

    /** As a client that takes the server for that host, which it names in SNI. */
    static Connection open(int port, String protocol, String host, SSLContext context) throws IOException {
        return open(port, parameters -> parameters.setProtocols(new String[] {protocol}), host, context);
    }

    /** With more to say of the TLS that it wants. */
    static Connection open(int port, Consumer<SSLParameters> wishes, String host, SSLContext context)
            throws IOException {
        SSLSocket socket = (SSLSocket) context.getSocketFactory().createSocket("127.0.0.1", port);
        try {
            socket.setSoTimeout((int) TimeUnit.SECONDS.toMillis(JavaProcess.PATIENCE_SECONDS));
            socket.setTcpNoDelay(true);
            SSLParameters parameters = socket.getSSLParameters();
            parameters.setServerNames(List.of(new SNIHostName(host)));
            wishes.accept(parameters);
            socket.setSSLParameters(parameters);
            socket.startHandshake();
            return new Connection(socket, host);
        } catch (IOException e) {
            socket.close();
            throw e;
        }
    }

    static SSLContext context() throws IOException {
        try {
            return Certificate.get().clientContext();
        } catch (GeneralSecurityException e) {
            throw new IOException(e);
        }
    }

    /** PUTs a body; answers the body of the response, which must be 200. */
    String put(String path, Body body) throws IOException {
        startPut(path, body.length());
        body.writeTo(out);
        out.flush();
        return response();
    }

    /** PUTs a body to a servlet that answers bytes. */
    byte[] exchange(String path, Body body) throws IOException {
        startPut(path, body.length());
        body.writeTo(out);
        out.flush();
        return responseBytes();
    }

    /** In TLS 1.2 the client renegotiates. */
    void handshakeAgain() throws IOException {
        socket.startHandshake();
    }

    SSLSession session() {
        return socket.getSession();
    }

    /** Sends the head of a PUT, and nothing of its body. */
    void startPut(String path, long length) throws IOException {
        head("PUT " + path + " HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: " + length + "\r\n\r\n");
    }

    byte[] get(String path) throws IOException {
        head("GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
        return responseBytes();
    }

    private void head(String head) throws IOException {
        out.write(head.getBytes(StandardCharsets.US_ASCII));
        out.flush();
    }

    private String response() throws IOException {
        return new String(responseBytes(), StandardCharsets.UTF_8);
    }

    private byte[] responseBytes() throws IOException {
        String status = line();
        long length = -1;
        for (String header = line(); !header.isEmpty(); header = line()) {
            String lower = header.toLowerCase(Locale.ROOT);
            if (lower.startsWith("content-length:")) {
                length = Long.parseLong(lower.substring("content-length:".length()).trim());
            }
        }
        byte[] body = length >= 0 ? exactly((int) length) : chunks();
        if (!status.startsWith("HTTP/1.1 200")) {
            throw new IOException(status + "\n" + new String(body, StandardCharsets.UTF_8));
        }
        return body;
    }

    private byte[] chunks() throws IOException {
        ByteArrayOutputStream all = new ByteArrayOutputStream();
        while (true) {
            int size = Integer.parseInt(line(), 16);
            all.write(exactly(size));
            line();
            if (size == 0) {
                return all.toByteArray();
            }
        }
    }

    private byte[] exactly(int length) throws IOException {
        byte[] bytes = in.readNBytes(length);
        if (bytes.length < length) {
            throw new EOFException("the server has closed the connection inside a body");
        }
        return bytes;
    }

    private String line() throws IOException {
        StringBuilder line = new StringBuilder();
        for (int c = in.read(); c != '\n'; c = in.read()) {
            if (c < 0) {
                throw new EOFException("the server has closed the connection; read so far: " + line);
            }
            line.append((char) c);
        }
        return line.toString().strip();
    }

    /** Waits until the server closes it. Throws where it sends something instead. */
    void awaitClose() throws IOException {
        try {
            int c = in.read();
            if (c >= 0) {
                throw new IllegalStateException("the server has sent a byte: " + c);
            }
        } catch (java.net.SocketTimeoutException e) {
            throw e;
        } catch (IOException reset) {
            // A reset closes it too.
        }
    }

    @Override
    public void close() throws IOException {
        socket.close();
    }
}
