package org.sslsweep.tomcattests;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.util.Base64;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** A certificate for servers on 127.0.0.1, made once for all tests by the JDK's keytool. */
final class Certificate {
    private static final char[] PASSWORD = "changeit".toCharArray();
    private static final Certificate INSTANCE = make();

    private final KeyStore store;

    private Certificate(KeyStore store) {
        this.store = store;
    }

    static Certificate get() {
        return INSTANCE;
    }

    java.security.cert.Certificate certificate() throws GeneralSecurityException {
        return store.getCertificate("server");
    }

    /** Writes certificate.pem and key.pem. */
    void write(Path folder) throws IOException {
        try {
            pem(folder.resolve("certificate.pem"), "CERTIFICATE", store.getCertificate("server").getEncoded());
            pem(folder.resolve("key.pem"), "PRIVATE KEY", store.getKey("server", PASSWORD).getEncoded());
        } catch (GeneralSecurityException e) {
            throw new IOException(e);
        }
    }

    /** For clients, which trust this certificate alone. */
    SSLContext clientContext() throws GeneralSecurityException, IOException {
        KeyStore trusted = KeyStore.getInstance("PKCS12");
        trusted.load(null, null);
        trusted.setCertificateEntry("server", store.getCertificate("server"));
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    private static void pem(Path file, String type, byte[] content) throws IOException {
        String base64 = Base64.getMimeEncoder(64, new byte[] {'\n'}).encodeToString(content);
        Files.writeString(file, "-----BEGIN " + type + "-----\n" + base64 + "\n-----END " + type + "-----\n");
    }

    private static Certificate make() {
        try {
            Path folder = Files.createTempDirectory("sslsweep-certificate");
            Path file = folder.resolve("server.p12");
            try {
                Process keytool = new ProcessBuilder(Paths.get(System.getProperty("java.home"), "bin", "keytool").toString(),
                        "-genkeypair", "-alias", "server", "-keyalg", "RSA", "-keysize", "2048", "-dname", "CN=localhost",
                        "-ext", "san=ip:127.0.0.1,dns:localhost", "-validity", "30", "-storetype", "PKCS12",
                        "-storepass", new String(PASSWORD), "-keystore", file.toString())
                        .redirectErrorStream(true).start();
                String said = new String(keytool.getInputStream().readAllBytes());
                if (keytool.waitFor() != 0) {
                    throw new IOException("keytool failed: " + said);
                }
                KeyStore store = KeyStore.getInstance("PKCS12");
                try (InputStream in = Files.newInputStream(file)) {
                    store.load(in, PASSWORD);
                }
                return new Certificate(store);
            } finally {
                Files.deleteIfExists(file);
                Files.delete(folder);
            }
        } catch (IOException | GeneralSecurityException e) {
            throw new IllegalStateException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(e);
        }
    }
}
