package org.sslsweep.testserver;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import org.apache.tomcat.util.threads.ThreadPoolExecutor;
import org.sslsweep.ThreadHygiene;

/**
 * A Tomcat under test. Says on its standard output, a line of JSON each, that it listens, and what it is asked on its
 * standard input; ends with it. Tomcat's log goes to standard error.
 *
 * <p>Orders: {@code snapshot}, {@code tasks}, {@code figures}, {@code reset}, {@code reload}, {@code restart},
 * {@code stop}, {@code quit}.
 */
public final class TestServer {
    private static final PrintStream OUT = System.out;

    private final Options options;
    private Instance instance;

    private TestServer(Options options) {
        this.options = options;
    }

    /** Exit code 2: it could not start as it was told, or it was told nonsense. */
    public static void main(String[] arguments) {
        // Whoever prints does not disturb the answers.
        System.setOut(System.err);
        try {
            new TestServer(Options.parse(arguments)).serve();
            System.exit(0);
        } catch (Exception | LinkageError e) {
            e.printStackTrace();
            System.exit(2);
        }
    }

    private void serve() throws Exception {
        start();
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String order = orders.readLine(); order != null; order = orders.readLine()) {
            if (!obey(order)) {
                return;
            }
        }
    }

    /** False: it was the last one. */
    private boolean obey(String order) throws Exception {
        switch (order) {
            case "snapshot":
                say(order, "\"snapshot\":" + ThreadHygiene.snapshot());
                return true;
            case "tasks":
                say(order, tasks());
                return true;
            case "figures":
                say(order, figures());
                return true;
            case "reset":
                ThreadHygiene.reset();
                say(order, "\"done\":true");
                return true;
            case "reload":
                instance.reload();
                say(order, "\"done\":true");
                return true;
            case "restart":
                instance.stop();
                start();
                return true;
            case "stop":
                instance.stop();
                say(order, "\"done\":true");
                return true;
            case "quit":
                say(order, "\"done\":true");
                return false;
            default:
                throw new IllegalArgumentException("unknown order: " + order);
        }
    }

    private void start() throws Exception {
        instance = Instance.start(options);
        say("listening", instance.facts() + ",\"pid\":" + ProcessHandle.current().pid());
    }

    /** Tasks that the connector's pool itself counted, once none is going on. */
    private String tasks() throws InterruptedException {
        ThreadPoolExecutor pool = instance.pool();
        if (pool == null) {
            throw new IllegalStateException("the connector has no thread pool of Tomcat's");
        }
        // The pool tells nobody that it has become idle. The test, which asks, has a time limit.
        while (pool.getActiveCount() > 0 || !pool.getQueue().isEmpty()) {
            Thread.sleep(1);
        }
        return "\"completed\":" + pool.getCompletedTaskCount();
    }

    private static String figures() {
        System.gc();
        return "\"threads\":" + ManagementFactory.getThreadMXBean().getThreadCount()
                + ",\"classes\":" + ManagementFactory.getClassLoadingMXBean().getLoadedClassCount();
    }

    private static void say(String event, String members) throws IOException {
        OUT.print("{\"event\":" + Json.quote(event) + "," + members + "}\n");
        if (OUT.checkError()) {
            throw new IOException("nobody reads the answers");
        }
    }
}
