package org.sslsweep.tomcattests;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import javax.net.ssl.KeyManager;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * Certificates of an authority of the tests' own, made by the openssl command: NAME.pem with the key NAME.key.
 *
 * <p>{@code rsa}, {@code ec}, {@code edwards}, {@code renewed}, {@code client} and {@code revoked} are the authority's;
 * {@code chained} is of {@code middle}, which is the authority's, and its key has a password; {@code stranger} is nobody's.
 * {@code listed} and {@code withdrawn} name a responder, which knows the second one as revoked.
 * {@code renewable} is a copy of {@code rsa}, to be replaced.
 */
final class DropInPki {
    static final String PASSWORD = "changeit";
    private static final List<String> RSA = List.of("-newkey", "rsa:2048");
    private static final List<String> EC = List.of("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256");

    final Path folder;

    private DropInPki(Path folder) {
        this.folder = folder;
    }

    static DropInPki make(Path folder, String responder) throws IOException, InterruptedException {
        DropInPki pki = new DropInPki(folder);
        pki.certificate("ca", null, EC, "basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign");
        pki.certificate("middle", "ca", EC, "basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign");
        pki.certificate("rsa", "ca", RSA, "subjectAltName=DNS:both.test");
        pki.certificate("ec", "ca", EC, "subjectAltName=DNS:both.test");
        pki.certificate("edwards", "ca", List.of("-newkey", "ed25519"), "subjectAltName=DNS:edwards.test");
        pki.certificate("renewed", "ca", RSA, "subjectAltName=DNS:renewed.test");
        pki.certificate("chained", "middle", RSA, "subjectAltName=DNS:chain.test");
        pki.certificate("client", "ca", EC, "extendedKeyUsage=clientAuth");
        pki.certificate("revoked", "ca", EC, "extendedKeyUsage=clientAuth");
        String ask = "authorityInfoAccess=OCSP;URI:" + responder;
        pki.certificate("listed", "ca", EC, "extendedKeyUsage=clientAuth", ask);
        pki.certificate("withdrawn", "ca", EC, "extendedKeyUsage=clientAuth", ask);
        pki.certificate("stranger", null, EC, "extendedKeyUsage=clientAuth");
        pki.openssl("pkey", "-in", pki.file("chained.key"), "-aes256", "-passout", "pass:" + PASSWORD, "-out",
                pki.file("chained.locked.key"));
        for (String name : List.of("rsa", "client", "revoked", "listed", "withdrawn", "stranger")) {
            pki.openssl("pkcs12", "-export", "-in", pki.file(name + ".pem"), "-inkey", pki.file(name + ".key"), "-certfile",
                    pki.file("ca.pem"), "-name", name, "-passout", "pass:" + PASSWORD, "-out", pki.file(name + ".p12"));
        }
        pki.keepRegister();
        pki.replace("renewable", "rsa");
        pki.writeTrustStore();
        return pki;
    }

    String file(String name) {
        return folder.resolve(name).toString();
    }

    /** A certificate and its key, as attributes of a host's certificate of that type. */
    String files(String type, String name) {
        return type + ".certificateFile:" + file(name + ".pem") + "," + type + ".certificateKeyFile:" + file(name + ".key");
    }

    /** Puts another certificate and its key where these are, as one who renews them does. */
    void replace(String name, String by) throws IOException {
        for (String end : List.of(".pem", ".key")) {
            Path beside = folder.resolve(name + end + ".new");
            Files.copy(folder.resolve(by + end), beside, StandardCopyOption.REPLACE_EXISTING);
            Files.move(beside, folder.resolve(name + end), StandardCopyOption.ATOMIC_MOVE);
        }
    }

    /** For a client that trusts the authority and the tests' other certificate; null: without a certificate. */
    SSLContext clientContext(String name) throws IOException {
        try {
            KeyStore trusted = load("trust.p12");
            trusted.setCertificateEntry("other", Certificate.get().certificate());
            TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
            trust.init(trusted);
            KeyManager[] keys = null;
            if (name != null) {
                KeyManagerFactory factory = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
                factory.init(load(name + ".p12"), PASSWORD.toCharArray());
                keys = factory.getKeyManagers();
            }
            SSLContext context = SSLContext.getInstance("TLS");
            context.init(keys, trust.getTrustManagers(), null);
            return context;
        } catch (GeneralSecurityException e) {
            throw new IOException(e);
        }
    }

    private KeyStore load(String name) throws IOException, GeneralSecurityException {
        KeyStore store = KeyStore.getInstance("PKCS12");
        try (InputStream in = Files.newInputStream(folder.resolve(name))) {
            store.load(in, PASSWORD.toCharArray());
        }
        return store;
    }

    /** The authority's certificate, as a keystore of Java. */
    private void writeTrustStore() throws IOException {
        try (InputStream in = Files.newInputStream(folder.resolve("ca.pem"));
                var out = Files.newOutputStream(folder.resolve("trust.p12"))) {
            KeyStore store = KeyStore.getInstance("PKCS12");
            store.load(null, null);
            store.setCertificateEntry("ca", CertificateFactory.getInstance("X.509").generateCertificate(in));
            store.store(out, PASSWORD.toCharArray());
        } catch (GeneralSecurityException e) {
            throw new IOException(e);
        }
    }

    private void certificate(String name, String issuer, List<String> key, String... extensions)
            throws IOException, InterruptedException {
        List<String> arguments = new ArrayList<>(List.of("req", "-x509", "-nodes", "-days", "30", "-subj", "/CN=" + name,
                "-keyout", file(name + ".key"), "-out", file(name + ".pem")));
        arguments.addAll(key);
        if (issuer != null) {
            arguments.addAll(List.of("-CA", file(issuer + ".pem"), "-CAkey", file(issuer + ".key")));
        }
        for (String extension : extensions) {
            arguments.addAll(List.of("-addext", extension));
        }
        openssl(arguments.toArray(String[]::new));
    }

    /** Writes the authority's register, index.txt, and ca.crl. */
    private void keepRegister() throws IOException, InterruptedException {
        Files.writeString(folder.resolve("index.txt"), "");
        Files.writeString(folder.resolve("ca.cnf"), "[ca]\ndefault_ca=own\n[own]\ndatabase=" + file("index.txt")
                + "\ndefault_md=sha256\ndefault_crl_days=30\n");
        String[] authority = {"ca", "-config", file("ca.cnf"), "-cert", file("ca.pem"), "-keyfile", file("ca.key")};
        openssl(with(authority, "-valid", file("listed.pem")));
        openssl(with(authority, "-revoke", file("revoked.pem")));
        openssl(with(authority, "-revoke", file("withdrawn.pem")));
        openssl(with(authority, "-gencrl", "-out", file("ca.crl")));
    }

    private static String[] with(String[] first, String... rest) {
        String[] all = Arrays.copyOf(first, first.length + rest.length);
        System.arraycopy(rest, 0, all, first.length, rest.length);
        return all;
    }

    void openssl(String... arguments) throws IOException, InterruptedException {
        DropInTool.run("", List.of(with(new String[] {"openssl"}, arguments)));
    }
}
