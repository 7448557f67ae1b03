package org.sslsweep.benchmarks;

import java.util.Collection;
import java.util.Map;
import java.util.TreeMap;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.VerboseMode;

/**
 * Runs {@link TaskBenchmark} and holds it to its bounds: nanoseconds over an empty native call, and bytes allocated.
 * Ends with exit code 1 when one does not hold.
 */
public final class Check {
    /** Nanoseconds that a guarded task may cost over an empty native call. */
    private static final double MOST_NANOS = 60;
    /** Bytes for each task: JMH's own allocations, spread over all tasks, are thousandths. */
    private static final double MOST_BYTES = 0.5;
    private static final String BASELINE = "emptyNativeCall";

    private Check() {}

    /** Runs. */
    public static void main(String[] arguments) throws RunnerException {
        Collection<RunResult> results = new Runner(new OptionsBuilder()
                        .include(TaskBenchmark.class.getName())
                        .addProfiler(GCProfiler.class)
                        .jvmArgsAppend("-Xms256m", "-Xmx256m")
                        .verbosity(VerboseMode.SILENT)
                        .shouldFailOnError(true)
                        .build())
                .run();
        Map<String, RunResult> byName = new TreeMap<>();
        for (RunResult result : results) {
            String name = result.getParams().getBenchmark();
            byName.put(name.substring(name.lastIndexOf('.') + 1), result);
        }
        double empty = nanos(byName.get(BASELINE));
        System.out.printf("%-18s %8s %8s %14s %12s  %s%n", "", "ns", "+-", "over empty, ns", "bytes/task", "bounds <= "
                + (int) MOST_NANOS + " ns, 0 bytes");
        boolean holds = true;
        for (Map.Entry<String, RunResult> entry : byName.entrySet()) {
            RunResult result = entry.getValue();
            double over = nanos(result) - empty;
            double bytes = result.getSecondaryResults().get("gc.alloc.rate.norm").getScore();
            boolean good = over <= MOST_NANOS && bytes < MOST_BYTES;
            holds &= good;
            System.out.printf("%-18s %8.1f %8.1f %14.1f %12.3f  %s%n", entry.getKey(), nanos(result),
                    result.getPrimaryResult().getScoreError(), over, bytes, good ? "hold" : "DO NOT HOLD");
        }
        if (!holds) {
            System.err.println("A bound does not hold. On a busy machine run it again; else look at the profile:"
                    + " java -cp ... org.openjdk.jmh.Main TaskBenchmark -prof perfasm");
            System.exit(1);
        }
    }

    private static double nanos(RunResult result) {
        return result.getPrimaryResult().getScore();
    }
}
