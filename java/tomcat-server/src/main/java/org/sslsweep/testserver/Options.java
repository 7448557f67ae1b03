package org.sslsweep.testserver;

import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.tomcat.util.IntrospectionUtils;

/** What the program was started with. Each argument is {@code --NAME=VALUE}. */
final class Options {
    private static final String HOST = "host.";

    /** How TLS is done. */
    enum Tls {
        /** OpenSSL through tomcat-native. */
        OPENSSL("org.apache.tomcat.util.net.openssl.OpenSSLImplementation",
                "org.apache.catalina.core.AprLifecycleListener"),
        /** OpenSSL through Java's foreign function interface. */
        FFM("org.apache.tomcat.util.net.openssl.panama.OpenSSLImplementation",
                "org.apache.catalina.core.OpenSSLLifecycleListener"),
        /** Java's own. */
        JSSE("org.apache.tomcat.util.net.jsse.JSSEImplementation", null);

        final String implementation;
        /** The listener that loads what the implementation needs. */
        final String loader;

        Tls(String implementation, String loader) {
            this.implementation = implementation;
            this.loader = loader;
        }
    }

    /** A folder of our own; certificate.pem and key.pem are in it. */
    final Path base;
    /** {@code apr}, {@code nio} or {@code nio2}. */
    final String connector;
    final Tls tls;
    /** Whether Tomcat itself finds out which implementation to use, as where server.xml says nothing. */
    final boolean automatic;
    /** Attributes of the connector. */
    final Map<String, String> attributes;
    /** By name what is said of each host, see {@link TlsHosts}: {@code --host.NAME=ATTRIBUTES}. */
    final Map<String, Map<String, String>> hosts = new LinkedHashMap<>();
    /** Whether there is HTTP/2. */
    final boolean http2;
    /** Attributes of sslsweep's listener; null: there is no listener. */
    final Map<String, String> listener;

    private Options(Map<String, String> values) {
        base = Paths.get(take(values, "base", null));
        connector = take(values, "connector", null);
        tls = Tls.valueOf(take(values, "tls", null));
        automatic = Boolean.parseBoolean(take(values, "automatic", "false"));
        attributes = pairs(take(values, "attributes", ""));
        http2 = Boolean.parseBoolean(take(values, "http2", "false"));
        for (String name : List.copyOf(values.keySet())) {
            if (name.startsWith(HOST)) {
                hosts.put(name.substring(HOST.length()), pairs(values.remove(name)));
            }
        }
        String text = take(values, "listener", "off");
        listener = text.equals("off") ? null : pairs(text);
        if (!values.isEmpty()) {
            throw new IllegalArgumentException("unknown options: " + values.keySet());
        }
    }

    static Options parse(String[] arguments) {
        Map<String, String> values = new LinkedHashMap<>();
        for (String argument : arguments) {
            int equals = argument.indexOf('=');
            if (!argument.startsWith("--") || equals < 0) {
                throw new IllegalArgumentException(argument + " is not --NAME=VALUE");
            }
            values.put(argument.substring(2, equals), argument.substring(equals + 1));
        }
        return new Options(values);
    }

    String protocol() {
        switch (connector) {
            case "apr":
                return "org.apache.coyote.http11.Http11AprProtocol";
            case "nio":
                return "org.apache.coyote.http11.Http11NioProtocol";
            case "nio2":
                return "org.apache.coyote.http11.Http11Nio2Protocol";
            default:
                throw new IllegalArgumentException("--connector is apr, nio or nio2, not " + connector);
        }
    }

    /** Sets a bean's property as server.xml would; refuses one that it has not. */
    static void set(Object bean, String name, String value) {
        if (!IntrospectionUtils.setProperty(bean, name, value)) {
            throw new IllegalArgumentException(bean.getClass().getName() + " has no attribute " + name);
        }
    }

    private static String take(Map<String, String> values, String name, String otherwise) {
        String value = values.remove(name);
        if (value == null && otherwise == null) {
            throw new IllegalArgumentException("--" + name + "= is missing");
        }
        return value == null ? otherwise : value;
    }

    /** {@code name:value,name:value}. */
    private static Map<String, String> pairs(String text) {
        Map<String, String> pairs = new LinkedHashMap<>();
        for (String pair : text.split(",")) {
            if (!pair.isEmpty()) {
                String[] parts = pair.split(":", 2);
                pairs.put(parts[0], parts[1]);
            }
        }
        return pairs;
    }
}
