package org.sslsweep.tomcattests;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.regex.Pattern;

/** A child process: its lines, its end, and what its JVM said about JNI. Ends with the test. */
final class JavaProcess {
    /** Only a server that hangs takes that long. */
    static final long PATIENCE_SECONDS = 120;
    /** Warnings of the JVM go to standard error with the log; so standard output has the answers alone. */
    static final List<String> CHECKS = List.of("-Xcheck:jni", "-XX:+DisplayVMOutputToStderr");
    /** Not a frame of a stack, nor a folder of the tests. */
    private static final Pattern OURS = Pattern.compile("\\bsslsweep[: ]");

    private final Process process;
    private final BlockingQueue<String> answers = new LinkedBlockingQueue<>();
    private final List<String> log = new ArrayList<>();
    private final Thread logReader;

    JavaProcess(ProcessBuilder builder) throws IOException {
        process = builder.start();
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
        reader("answers", process.getInputStream(), answers::add);
        logReader = reader("log", process.getErrorStream(), this::note);
    }

    private static Thread reader(String name, InputStream in, Consumer<String> take) {
        Thread thread = new Thread(() -> {
            try (BufferedReader lines = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8))) {
                for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                    take.accept(line);
                }
            } catch (IOException e) {
                take.accept("cannot be read: " + e);
            }
        }, name);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    private void note(String line) {
        synchronized (log) {
            log.add(line);
            log.notifyAll();
        }
    }

    /** Writes a line to its standard input. */
    void say(String line) throws IOException {
        process.getOutputStream().write((line + "\n").getBytes(StandardCharsets.UTF_8));
        process.getOutputStream().flush();
    }

    /** The next line of its standard output. */
    String answer() throws IOException, InterruptedException {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
        while (System.nanoTime() < until) {
            String line = answers.poll(1, TimeUnit.SECONDS);
            if (line != null) {
                return line;
            }
            if (!process.isAlive() && answers.isEmpty()) {
                throw new IOException("the server has ended with exit code " + process.exitValue() + ":\n" + tail());
            }
        }
        throw new IOException("the server does not answer:\n" + tail());
    }

    /** Waits for a line of its log. */
    String awaitLog(Predicate<String> wanted) throws IOException, InterruptedException {
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
        synchronized (log) {
            int seen = 0;
            while (true) {
                for (; seen < log.size(); seen++) {
                    if (wanted.test(log.get(seen))) {
                        return log.get(seen);
                    }
                }
                if (!process.isAlive() || System.nanoTime() > until) {
                    throw new IOException("the line is not in the log:\n" + tail());
                }
                log.wait(1000);
            }
        }
    }

    /** Its log so far. */
    List<String> log() {
        synchronized (log) {
            return List.copyOf(log);
        }
    }

    /** What we have written to its log so far. */
    List<String> reports() {
        return log().stream().filter(line -> OURS.matcher(line).find()).toList();
    }

    long pid() {
        return process.pid();
    }

    /** Asks it to end, as the system does when it shuts down. */
    void terminate() {
        process.destroy();
    }

    /** Waits for its end; answers its exit code. */
    int awaitEnd() throws IOException, InterruptedException {
        if (!process.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
            kill();
            throw new IOException("the server does not end:\n" + tail());
        }
        logReader.join(TimeUnit.SECONDS.toMillis(PATIENCE_SECONDS));
        return process.exitValue();
    }

    void kill() {
        process.destroyForcibly();
    }

    /** What its JVM said about JNI. Complete once it has ended. */
    JniReport jni() {
        return new JniReport(String.join("\n", log()));
    }

    private String tail() {
        List<String> lines = log();
        return String.join("\n", lines.subList(Math.max(0, lines.size() - 40), lines.size()));
    }
}
