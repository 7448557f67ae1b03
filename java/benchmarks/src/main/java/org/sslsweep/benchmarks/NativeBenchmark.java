package org.sslsweep.benchmarks;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.Base64;
import java.util.concurrent.TimeUnit;
import org.apache.tomcat.jni.Buffer;
import org.apache.tomcat.jni.Library;
import org.apache.tomcat.jni.Pool;
import org.apache.tomcat.jni.SSL;
import org.apache.tomcat.jni.SSLContext;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/** What the natives of a tcnative cost: the one that is in {@code java.library.path}. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 300, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
public class NativeBenchmark {
    private static final char[] PASSWORD = "changeit".toCharArray();
    private static final int NETWORK = 18_713;

    private final ByteBuffer plain = ByteBuffer.allocateDirect(16 << 10);
    private final ByteBuffer network = ByteBuffer.allocateDirect(NETWORK);
    private long plainAddress;
    private long networkAddress;
    private long context;
    private End client;
    private End server;

    /** One end of a connection. */
    private static final class End {
        final long ssl;
        final long bio;

        End(long context, boolean server) {
            ssl = SSL.newSSL(context, server);
            bio = SSL.makeNetworkBIO(ssl);
        }
    }

    /** A client and a server that have shaken hands. */
    @Setup
    public void connect() throws Exception {
        Library.initialize(null);
        SSL.initialize(null);
        plainAddress = Buffer.address(plain);
        networkAddress = Buffer.address(network);
        long pool = Pool.create(0);
        context = SSLContext.make(pool, SSL.SSL_PROTOCOL_TLSV1_3, SSL.SSL_MODE_SERVER);
        Path folder = Files.createTempDirectory("sslsweep-natives");
        try {
            identity(folder);
            SSLContext.setCertificate(context, folder.resolve("certificate.pem").toString(),
                    folder.resolve("key.pem").toString(), null, SSL.SSL_AIDX_RSA);
        } finally {
            for (String name : new String[] {"store.p12", "certificate.pem", "key.pem"}) {
                Files.deleteIfExists(folder.resolve(name));
            }
            Files.delete(folder);
        }
        client = new End(SSLContext.make(pool, SSL.SSL_PROTOCOL_TLSV1_3, SSL.SSL_MODE_CLIENT), false);
        server = new End(context, true);
        for (int turn = 0; SSL.isInInit(server.ssl) != 0 || SSL.isInInit(client.ssl) != 0; turn++) {
            if (turn > 10) {
                throw new IllegalStateException("no handshake: " + SSL.getErrorString(SSL.getLastErrorNumber()));
            }
            SSL.doHandshake(client.ssl);
            carry(client, server);
            SSL.doHandshake(server.ssl);
            carry(server, client);
        }
        // Tickets.
        SSL.readFromSSL(client.ssl, 0, 0);
        if (exchange(4096) != 4096) {
            throw new IllegalStateException("what was sent has not arrived");
        }
    }

    private static void identity(Path folder) throws IOException, InterruptedException, GeneralSecurityException {
        Path store = folder.resolve("store.p12");
        int status = new ProcessBuilder(Path.of(System.getProperty("java.home"), "bin", "keytool").toString(), "-genkeypair",
                "-keyalg", "RSA", "-keysize", "2048", "-dname", "CN=localhost", "-alias", "one", "-storetype", "PKCS12",
                "-keystore", store.toString(), "-storepass", new String(PASSWORD)).start().waitFor();
        if (status != 0) {
            throw new IOException("keytool has ended with exit code " + status);
        }
        KeyStore keys = KeyStore.getInstance(store.toFile(), PASSWORD);
        pem(folder.resolve("certificate.pem"), "CERTIFICATE", keys.getCertificate("one").getEncoded());
        pem(folder.resolve("key.pem"), "PRIVATE KEY", keys.getKey("one", PASSWORD).getEncoded());
    }

    private static void pem(Path file, String what, byte[] bytes) throws IOException {
        String text = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(bytes);
        Files.writeString(file, "-----BEGIN " + what + "-----\n" + text + "\n-----END " + what + "-----\n",
                StandardCharsets.US_ASCII);
    }

    /** Brings what waits at one end to the other one. */
    private void carry(End from, End to) {
        for (int waits = SSL.pendingWrittenBytesInBIO(from.bio); waits > 0; waits = SSL.pendingWrittenBytesInBIO(from.bio)) {
            int length = SSL.readFromBIO(from.bio, networkAddress, Math.min(waits, NETWORK));
            SSL.writeToBIO(to.bio, networkAddress, length);
        }
    }

    /** A record from the client to the server, by the natives that Tomcat calls for it. */
    private int exchange(int length) {
        SSL.writeToSSL(client.ssl, plainAddress, length);
        carry(client, server);
        SSL.readFromSSL(server.ssl, 0, 0);
        int readable = SSL.pendingReadableBytesInSSL(server.ssl);
        return SSL.readFromSSL(server.ssl, plainAddress, readable);
    }

    /** Both sides of a record of 4 KiB. */
    @Benchmark
    public int record4k() {
        return exchange(4096);
    }

    /** Both sides of a record of 16 KiB. */
    @Benchmark
    public int record16k() {
        return exchange(16 << 10);
    }

    /** A connection made and freed. */
    @Benchmark
    public long connection() {
        End end = new End(context, true);
        SSL.freeBIO(end.bio);
        SSL.freeSSL(end.ssl);
        return end.ssl;
    }

    /** The read that Tomcat makes to have OpenSSL look, with nothing there. */
    @Benchmark
    public int readFromSSLInVain() {
        int answer = SSL.readFromSSL(server.ssl, 0, 0);
        return answer + SSL.getLastErrorNumber();
    }

    /** As its name says. */
    @Benchmark
    public int pendingReadableBytesInSSL() {
        return SSL.pendingReadableBytesInSSL(server.ssl);
    }

    /** As its name says. */
    @Benchmark
    public int pendingWrittenBytesInBIO() {
        return SSL.pendingWrittenBytesInBIO(server.bio);
    }

    /** As its name says. */
    @Benchmark
    public int getShutdown() {
        return SSL.getShutdown(server.ssl);
    }

    /** As its name says. */
    @Benchmark
    public int getLastErrorNumber() {
        return SSL.getLastErrorNumber();
    }

    /** As its name says. */
    @Benchmark
    public long bufferAddress() {
        return Buffer.address(plain);
    }
}
