package org.sslsweep.tomcat;

import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.sslsweep.TaskHooks;

/** The labels of one connector's tasks and TLS operations, as numbers. Immutable. */
final class ConnectorLabels {
    /** How labels begin, where the listener's attribute {@code label} does not say. */
    static final String DEFAULT_PATTERN = "{protocol}-{port}";

    private static final Pattern PLACEHOLDER = Pattern.compile("\\{([^{}]*)\\}");
    /** What Tomcat's names begin with: "https-openssl-nio2" of "https-openssl-nio2-127.0.0.1-8443". */
    private static final Pattern PROTOCOL = Pattern.compile("(.+?-(?:nio2?|apr))(?:-.*)?");

    final String base;
    final int tlsHandshake;
    final int tlsRead;
    final int tlsWrite;
    final int tlsClose;
    /** Making the contexts, when the connector starts. */
    final int setUp;
    private final int[] phases = new int[Phase.values().length];

    ConnectorLabels(String base) {
        this.base = base;
        for (Phase phase : Phase.values()) {
            phases[phase.ordinal()] = TaskHooks.label(base + phase.suffix);
        }
        tlsHandshake = TaskHooks.label(base + "/tls-handshake");
        tlsRead = TaskHooks.label(base + "/tls-read");
        tlsWrite = TaskHooks.label(base + "/tls-write");
        tlsClose = TaskHooks.label(base + "/tls-close");
        setUp = TaskHooks.label(base + "/set-up");
    }

    /** The label of tasks in this phase. */
    int of(Phase phase) {
        return phases[phase.ordinal()];
    }

    /**
     * Fills a pattern.
     *
     * @param name Tomcat's name of the connector, without quotes
     * @param port its port; 0 where the system chooses one; less where it listens on no port
     * @throws IllegalArgumentException when the pattern is not one
     */
    static String base(String pattern, String name, int port) {
        Matcher matcher = PROTOCOL.matcher(name);
        String protocol = matcher.matches() ? matcher.group(1) : name;
        // Not the port that the system chose, nor Tomcat's count of such connectors: a restart keeps the labels.
        String portText = port > 0 ? Integer.toString(port) : port == 0 ? "auto" : "local";
        String base = PLACEHOLDER.matcher(pattern).replaceAll(found -> Matcher.quoteReplacement(
                value(pattern, found.group(1), name, protocol, portText)));
        if (base.isBlank() || base.indexOf('{') >= 0 || base.indexOf('}') >= 0) {
            throw bad(pattern);
        }
        return base;
    }

    private static String value(String pattern, String placeholder, String name, String protocol, String port) {
        switch (placeholder) {
            case "name":
                return name;
            case "protocol":
                return protocol;
            case "port":
                return port;
            default:
                throw bad(pattern);
        }
    }

    private static IllegalArgumentException bad(String pattern) {
        return new IllegalArgumentException("label=\"" + pattern + "\" is no pattern for labels; it is a text that may"
                + " hold {name}, {protocol} and {port}, such as \"" + DEFAULT_PATTERN + "\"");
    }
}
