package org.sslsweep.benchmarks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.VerboseMode;

/**
 * Runs {@link NativeBenchmark} on our libtcnative-2.so and on the C library by turns, and writes the medians, in
 * nanoseconds, for {@code sslsweep dropin-cost --natives}.
 */
public final class Natives {
    private static final int TURNS = 3;

    private Natives() {}

    /** Arguments: folder of our library, folder of the C library, file for the figures. */
    public static void main(String[] arguments) throws RunnerException, IOException {
        if (arguments.length != 3) {
            System.err.println("arguments: FOLDER-OF-OURS FOLDER-OF-THE-C-LIBRARY FILE.json");
            System.exit(2);
        }
        Map<String, List<Double>> ours = new TreeMap<>();
        Map<String, List<Double>> c = new TreeMap<>();
        for (int turn = 1; turn <= TURNS; turn++) {
            System.err.println("natives: turn " + turn + " of " + TURNS);
            run(arguments[0], ours);
            run(arguments[1], c);
        }
        String json = ours.entrySet().stream()
                .map(entry -> String.format(Locale.ROOT, "  \"%s\": {\"dropin\": %.1f, \"c\": %.1f}", entry.getKey(),
                        median(entry.getValue()), median(c.get(entry.getKey()))))
                .collect(Collectors.joining(",\n", "{\n", "\n}\n"));
        Path file = Path.of(arguments[2]).toAbsolutePath();
        Files.createDirectories(file.getParent());
        Files.writeString(file, json);
    }

    private static void run(String folder, Map<String, List<Double>> nanos) throws RunnerException {
        var results = new Runner(new OptionsBuilder()
                        .include(NativeBenchmark.class.getName())
                        .jvmArgsAppend("-Xms256m", "-Xmx256m", "-Djava.library.path=" + folder)
                        .verbosity(VerboseMode.SILENT)
                        .shouldFailOnError(true)
                        .build())
                .run();
        for (RunResult result : results) {
            String name = result.getParams().getBenchmark();
            nanos.computeIfAbsent(name.substring(name.lastIndexOf('.') + 1), key -> new ArrayList<>())
                    .add(result.getPrimaryResult().getScore());
        }
    }

    private static double median(List<Double> values) {
        List<Double> sorted = new ArrayList<>(values);
        Collections.sort(sorted);
        return sorted.get(sorted.size() / 2);
    }
}
