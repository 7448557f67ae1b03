package org.sslsweep;

import java.io.File;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** A JVM of the version that the test runs on, for what can be done once in a JVM, or is said on its output. */
final class ChildJvm {
    /** Long for a machine that is busy; a child that hangs fails the test. */
    private static final long PATIENCE_SECONDS = 120;

    private final List<String> prefix = new ArrayList<>();
    private final List<String> options = new ArrayList<>();
    private String classPath = System.getProperty("java.class.path");

    ChildJvm() {
        options.add("-Xcheck:jni");
        if (Runtime.version().feature() >= 24) {
            options.add("--enable-native-access=ALL-UNNAMED");
        }
    }

    ChildJvm option(String option) {
        options.add(option);
        return this;
    }

    ChildJvm property(String name, Object value) {
        return option("-D" + name + "=" + value);
    }

    ChildJvm without(String option) {
        options.remove(option);
        return this;
    }

    /** Puts a folder before all others. */
    ChildJvm first(Path folder) {
        classPath = folder + File.pathSeparator + classPath;
        return this;
    }

    /** Takes nothing but these. */
    ChildJvm only(Path... entries) {
        classPath = Stream.of(entries).map(Path::toString).collect(Collectors.joining(File.pathSeparator));
        return this;
    }

    /** Has the JVM started by a command of the shell, which must end in {@code exec "$@"}. */
    ChildJvm by(String command) {
        prefix.addAll(List.of("/bin/sh", "-c", command, "sh"));
        return this;
    }

    /** Runs a class; returns what it and the JVM said. Fails unless all went well and nothing of JNI was misused. */
    String run(Class<?> program, String... arguments) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(prefix);
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(options);
        command.addAll(List.of("-cp", classPath, program.getName()));
        command.addAll(List.of(arguments));
        String name = program.getSimpleName() + " " + List.of(arguments) + " with " + options;
        Process child = new ProcessBuilder(command).redirectErrorStream(true).start();
        Thread end = new Thread(child::destroyForcibly);
        Runtime.getRuntime().addShutdownHook(end);
        Thread watch = new Thread(() -> {
            try {
                if (!child.waitFor(PATIENCE_SECONDS, TimeUnit.SECONDS)) {
                    child.destroyForcibly();
                }
            } catch (InterruptedException over) {
                Thread.currentThread().interrupt();
            }
        });
        watch.setDaemon(true);
        watch.start();
        String output = new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        int code = child.waitFor();
        Runtime.getRuntime().removeShutdownHook(end);
        if (code != 0) {
            throw new AssertionError("exit code " + code + " of " + name + ":\n" + output);
        }
        for (String complaint : List.of("WARNING in native", "FATAL ERROR", "JNI local refs", "ReleaseStringUTF")) {
            if (output.contains(complaint)) {
                throw new AssertionError(complaint + " in the output of " + name + ":\n" + output);
            }
        }
        return output;
    }

    /** In a child: fails unless the JVM checks what natives do, so that no complaint means something. */
    static void requireChecks() {
        if (!ManagementFactory.getRuntimeMXBean().getInputArguments().contains("-Xcheck:jni")) {
            throw new AssertionError("this JVM runs without -Xcheck:jni");
        }
    }
}
