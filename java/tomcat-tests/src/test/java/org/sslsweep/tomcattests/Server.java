package org.sslsweep.tomcattests;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/** A test server in a JVM of its own; see its program's documentation. */
final class Server implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Path base;
    private final JavaProcess process;
    private JsonNode listening;
    private boolean ended;

    private Server(Path base, JavaProcess process) {
        this.base = base;
        this.process = process;
    }

    /**
     * What is started.
     *
     * @param java the program of the Java that runs it
     * @param jvm options of the JVM
     * @param attributes attributes of the connector, {@code name:value}
     */
    record Program(
            String java, List<String> jvm, String classPath, String connector, String tls, List<String> attributes) {}

    /** How a server is started. */
    static final class Builder {
        private final Program program;
        private final List<String> jvm = new ArrayList<>();
        private final List<String> attributes = new ArrayList<>();
        private final List<String> options = new ArrayList<>();
        private String listener = "";
        private String libraryPath = Folders.TCNATIVE.toString();

        private Builder(Program program) {
            this.program = program;
            jvm.addAll(program.jvm());
            attributes.addAll(program.attributes());
        }

        /** An attribute of the connector, {@code name:value}. */
        Builder attribute(String attribute) {
            attributes.add(attribute);
            return this;
        }

        /** An option of the server's program, {@code --NAME=VALUE}. */
        Builder option(String option) {
            options.add(option);
            return this;
        }

        Builder withoutListener() {
            listener = "off";
            return this;
        }

        /** An option of the JVM. */
        Builder jvm(String option) {
            jvm.add(option);
            return this;
        }

        Builder libraryPath(String path) {
            libraryPath = path;
            return this;
        }

        /** Starts it, and does not wait. */
        Server launch() throws IOException {
            Path base = Files.createTempDirectory("sslsweep-server");
            Certificate.get().write(base);
            List<String> command = new ArrayList<>();
            command.add(program.java());
            command.addAll(JavaProcess.CHECKS);
            command.addAll(List.of("-Xmx256m", "-Djava.library.path=" + libraryPath));
            command.addAll(jvm);
            command.addAll(List.of("-cp", program.classPath(), "org.sslsweep.testserver.TestServer", "--base=" + base,
                    "--connector=" + program.connector(), "--tls=" + program.tls(), "--listener=" + listener,
                    "--attributes=" + String.join(",", attributes)));
            command.addAll(options);
            return new Server(base, new JavaProcess(new ProcessBuilder(command)));
        }

        /** Starts it, and waits until it listens. */
        Server start() throws IOException, InterruptedException {
            Server server = launch();
            try {
                server.listening = server.expect("listening");
                return server;
            } catch (IOException | InterruptedException | RuntimeException e) {
                server.process.kill();
                throw e;
            }
        }
    }

    static Builder of(Kind kind) throws IOException {
        return of(kind.program());
    }

    static Builder of(Program program) {
        return new Builder(program);
    }

    int port() {
        return listening.get("port").intValue();
    }

    /** The class that makes its TLS engines. */
    String tls() {
        return listening.get("tls").textValue();
    }

    /** Its folder, with certificate.pem. */
    Path base() {
        return base;
    }

    JavaProcess process() {
        return process;
    }

    /** Gives an order; answers what it says. */
    JsonNode order(String order) throws IOException, InterruptedException {
        process.say(order);
        return expect(order);
    }

    Ledger ledger() throws IOException, InterruptedException {
        return new Ledger(order("snapshot").get("snapshot"));
    }

    /** Tasks that the connector's pool counted itself. */
    long completedTasks() throws IOException, InterruptedException {
        return order("tasks").get("completed").longValue();
    }

    void restart() throws IOException, InterruptedException {
        process.say("restart");
        listening = expect("listening");
    }

    private JsonNode expect(String event) throws IOException, InterruptedException {
        JsonNode said = JSON.readTree(process.answer());
        assertEquals(event, said.path("event").asText(), said::toString);
        return said;
    }

    /** Ends it and fails the test unless that went well and the JVM had nothing to say about our natives. */
    void end() throws IOException, InterruptedException {
        ended = true;
        order("quit");
        assertEquals(0, process.awaitEnd(), "exit code");
        assertEquals(List.of(), process.jni().ours(), "what -Xcheck:jni said about our natives");
    }

    @Override
    public void close() throws IOException {
        // After a failed assertion, which must not be hidden by another.
        if (!ended) {
            process.kill();
        }
        try (Stream<Path> files = Files.walk(base)) {
            files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
        }
    }
}
