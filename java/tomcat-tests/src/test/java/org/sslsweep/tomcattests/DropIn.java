package org.sslsweep.tomcattests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.List;

/**
 * Starts Tomcats with our libtcnative-2.so, and holds them to it. Maven tells where it is:
 * {@code -Dsslsweep.dropin.folder=FOLDER}; and, for a look at how the C library does,
 * {@code -Dsslsweep.dropin.version=1.2.35}.
 */
final class DropIn {
    /** The version that ours says it is. */
    private static final String OURS = "2.0.16";
    private static final Path FOLDER = Paths.get(System.getProperty("sslsweep.dropin.folder")).toAbsolutePath().normalize();
    private static final String VERSION = System.getProperty("sslsweep.dropin.version", OURS);

    private DropIn() {}

    /** Whether it is ours, and not the C library, which the tests are run with to learn what is right. */
    static boolean isOurs() {
        return VERSION.equals(OURS);
    }

    /** The library itself. */
    static Path library() {
        return FOLDER.resolve("libtcnative-" + VERSION.charAt(0) + ".so");
    }

    static Server.Builder of(DropInKind kind) throws IOException {
        return Server.of(kind.program()).withoutListener().libraryPath(FOLDER.toString()).option("--http2=true");
    }

    /** Starts it, and fails the test unless TLS is done by the library. */
    static Server start(Server.Builder builder) throws IOException, InterruptedException {
        Server server = builder.start();
        try {
            JavaProcess process = server.process();
            process.awaitLog(line -> line.contains("Loaded Apache Tomcat Native library [" + VERSION));
            process.awaitLog(line -> line.contains("OpenSSL successfully initialized"));
            String maps = Files.readString(Paths.get("/proc/" + process.pid() + "/maps"));
            assertTrue(maps.contains(library().toRealPath().toString()), maps);
            assertTrue(server.tls().endsWith(".openssl.OpenSSLContext"), server.tls());
            return server;
        } catch (IOException | InterruptedException | RuntimeException | AssertionError e) {
            server.close();
            throw e;
        }
    }

    /** Ends it. The JVM must have nothing to say about any native. */
    static void end(Server server) throws IOException, InterruptedException {
        try (server) {
            server.end();
            JniReport jni = server.process().jni();
            // The C library 1.2.35 is warned about.
            assertEquals(List.of(), isOurs() ? jni.all() : jni.ours(), "what -Xcheck:jni said");
        }
    }
}
