package org.sslsweep.testserver;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.catalina.util.ServerInfo;
import org.apache.tomcat.jni.Library;
import org.apache.tomcat.jni.SSL;
import org.sslsweep.ThreadHygiene;

/**
 * The server of {@code sslsweep regress --server tomcat...}: Tomcats in one process whose TLS connectors differ by
 * nothing but the HygieneListener, so that its cost is not lost in what two JVMs differ by.
 *
 * <p>The connector {@code sweep} has the listener. All others are without: {@code none}, and {@code control}, which
 * says how far apart two equal ones seem to be. Orders come on standard input and are answered on standard output, a line
 * of JSON each (docs/design.md, "Protocol between regress and its server"); Tomcat's log goes to standard error. The end of
 * standard input ends the process.
 */
public final class RegressServer {
    private static final PrintStream OUT = System.out;

    private final Map<String, Instance> instances = new LinkedHashMap<>();
    private final Shim shim = new Shim();

    private RegressServer() {}

    /**
     * Exit code 2: it could not start as it was told.
     *
     * @param arguments names of connectors, with commas between them; then what {@link Options} takes, for all of them
     */
    public static void main(String[] arguments) {
        // Whoever prints does not disturb the answers.
        System.setOut(System.err);
        try {
            RegressServer server = new RegressServer();
            server.start(arguments[0].split(","), Arrays.copyOfRange(arguments, 1, arguments.length));
            server.obey();
            // Not one after the other: the first APR listener to go would take the library from the others.
            System.exit(0);
        } catch (Exception | LinkageError e) {
            e.printStackTrace();
            System.exit(2);
        }
    }

    private void start(String[] names, String[] common) throws Exception {
        if (!ThreadHygiene.isAvailable()) {
            throw new IllegalStateException(ThreadHygiene.unavailableReason());
        }
        String[] arguments = Arrays.copyOf(common, common.length + 1);
        for (String name : names) {
            arguments[common.length] = "--listener=" + (name.equals("sweep") ? "" : "off");
            Options options = Options.parse(arguments);
            instances.put(name, Instance.start(options, (instance, context) ->
                    Instance.add(context, "/load", new LoadServlet())));
        }
        Instance first = instances.values().iterator().next();
        String certificate = Files.readString(Options.parse(arguments).base.resolve("certificate.pem"));
        String addresses = instances.entrySet().stream()
                .map(entry -> Json.quote(entry.getKey()) + ":" + Json.quote("127.0.0.1:" + entry.getValue().port()))
                .collect(Collectors.joining(","));
        say("\"listening\",\"addresses\":{" + addresses + "},\"pid\":" + ProcessHandle.current().pid()
                + ",\"certificate\":" + Json.quote(certificate)
                + ",\"version\":" + Json.quote(SSL.versionString())
                + ",\"server\":{\"tomcat\":" + Json.quote(ServerInfo.getServerInfo())
                + ",\"connector\":" + Json.quote(first.protocol().getName().replace("\"", ""))
                + ",\"tcnative\":" + Json.quote(Library.versionString())
                + ",\"java\":" + Json.quote(System.getProperty("java.vm.name") + " " + Runtime.version()) + "}");
    }

    private void obey() throws IOException {
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String order = orders.readLine(); order != null; order = orders.readLine()) {
            if (!order.isBlank()) {
                say(answer(order.trim()));
            }
            if (order.trim().equals("quit")) {
                return;
            }
        }
    }

    private String answer(String order) {
        switch (order) {
            case "cpu":
                return "\"cpu\",\"cpu_ns\":" + ProcessClock.nanoseconds();
            case "states":
                return "\"states\"," + shim.states();
            case "stats":
                return "\"stats\"," + shim.stats();
            case "quit":
                return "\"quit\"";
            default:
                return "\"error\",\"message\":" + Json.quote(refusal(order));
        }
    }

    private static String refusal(String order) {
        if (order.startsWith("cure")) {
            return "a Tomcat has an address for each cure: see the event listening";
        }
        if (order.startsWith("age")) {
            return "a Tomcat does not age: its releases of OpenSSL keep no state of a thread that has ended";
        }
        return "\"" + order + "\" is not an order; there are: stats, cpu, states, quit";
    }

    /** Says a line: the event's name in quotes, and its members. */
    private static void say(String event) throws IOException {
        OUT.print("{\"event\":" + event + "}\n");
        if (OUT.checkError()) {
            throw new IOException("nobody reads the answers");
        }
    }
}
