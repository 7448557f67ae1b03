package org.sslsweep;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Collectors;

/** A program that says how loading went. It needs the jar, and nothing else. */
final class LoadReport {
    private static final TaskLabel CONSTANT = TaskLabel.of("made without a library too");

    private LoadReport() {}

    public static void main(String[] arguments) throws Exception {
        System.out.println("reason: " + ThreadHygiene.unavailableReason());
        System.out.println("loaded: " + System.getProperty(NativeLoader.LOADED_PROPERTY));
        if (ThreadHygiene.isAvailable()) {
            ThreadHygiene.run(CONSTANT, () -> System.out.println("depth: " + ThreadHygiene.queueDepth()));
            System.out.println("mapped: " + Files.readAllLines(Path.of("/proc/self/maps")).stream()
                    .filter(line -> line.contains(NativeLoader.FILE_NAME))
                    .map(line -> line.substring(line.indexOf('/'))).distinct().collect(Collectors.joining(", ")));
            return;
        }
        Throwable cause = failure(() -> ThreadHygiene.guard(CONSTANT)).getCause();
        for (Runnable use : new Runnable[] {
            () -> ThreadHygiene.guard("text"), ThreadHygiene::queueDepth, ThreadHygiene::snapshot,
            ThreadHygiene::threadCleanup, ThreadHygiene::registerMBean, () -> ThreadHygiene.wrap("text", () -> { })
        }) {
            IllegalStateException again = failure(use);
            if (again.getCause() != cause || !again.getMessage().equals(ThreadHygiene.unavailableReason())) {
                throw new AssertionError("not the error that was kept", again);
            }
        }
        System.out.println("kept: " + cause.getClass().getName());
    }

    private static IllegalStateException failure(Runnable use) {
        try {
            use.run();
        } catch (IllegalStateException expected) {
            return expected;
        }
        throw new AssertionError("no error without a library");
    }
}
