package org.sslsweep.testserver;

import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import org.apache.catalina.connector.Connector;
import org.apache.tomcat.util.net.SSLHostConfig;
import org.apache.tomcat.util.net.SSLHostConfigCertificate;
import org.apache.tomcat.util.net.openssl.OpenSSLConf;
import org.apache.tomcat.util.net.openssl.OpenSSLConfCmd;

/**
 * The hosts of a connector, which it tells apart by SNI. What an attribute belongs to is said by what its name begins with:
 * {@code conf.} is a command of OpenSSLConf; {@code undefined.}, {@code rsa.} and {@code ec.} a certificate of that type;
 * all others are the host's own. A host without a certificate has certificate.pem and key.pem of the base folder.
 */
final class TlsHosts {
    private static final String DEFAULT = "_default_";
    private static final String CONF = "conf.";

    private final Path base;

    private TlsHosts(Path base) {
        this.base = base;
    }

    static void add(Connector connector, Options options) {
        TlsHosts hosts = new TlsHosts(options.base);
        if (!options.hosts.containsKey(DEFAULT)) {
            connector.addSslHostConfig(hosts.host(DEFAULT, Map.of()));
        }
        options.hosts.forEach((name, attributes) -> connector.addSslHostConfig(hosts.host(name, attributes)));
    }

    private SSLHostConfig host(String name, Map<String, String> attributes) {
        SSLHostConfig host = new SSLHostConfig();
        host.setHostName(name);
        host.setProtocols("TLSv1.2+TLSv1.3");
        OpenSSLConf conf = new OpenSSLConf();
        attributes.forEach((attribute, value) -> {
            if (attribute.startsWith(CONF)) {
                conf.addCmd(command(attribute.substring(CONF.length()), value));
            } else if (attribute.indexOf('.') < 0) {
                Options.set(host, attribute, value);
            }
        });
        if (!conf.getCommands().isEmpty()) {
            host.setOpenSslConf(conf);
        }
        for (SSLHostConfigCertificate.Type type : SSLHostConfigCertificate.Type.values()) {
            addCertificate(host, type, attributes);
        }
        if (host.getCertificates().isEmpty()) {
            addCertificate(host, SSLHostConfigCertificate.Type.UNDEFINED, Map.of(
                    "undefined.certificateFile", base.resolve("certificate.pem").toString(),
                    "undefined.certificateKeyFile", base.resolve("key.pem").toString()));
        }
        return host;
    }

    private static OpenSSLConfCmd command(String name, String value) {
        OpenSSLConfCmd command = new OpenSSLConfCmd();
        command.setName(name);
        command.setValue(value);
        return command;
    }

    private static void addCertificate(
            SSLHostConfig host, SSLHostConfigCertificate.Type type, Map<String, String> attributes) {
        String prefix = type.name().toLowerCase(Locale.ROOT) + ".";
        if (attributes.keySet().stream().anyMatch(attribute -> attribute.startsWith(prefix))) {
            SSLHostConfigCertificate certificate = new SSLHostConfigCertificate(host, type);
            attributes.forEach((attribute, value) -> {
                if (attribute.startsWith(prefix)) {
                    Options.set(certificate, attribute.substring(prefix.length()), value);
                }
            });
            host.addCertificate(certificate);
        }
    }
}
