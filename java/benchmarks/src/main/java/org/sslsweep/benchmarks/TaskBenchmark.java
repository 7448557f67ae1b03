package org.sslsweep.benchmarks;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import org.sslsweep.Guard;
import org.sslsweep.NativeCall;
import org.sslsweep.TaskHooks;
import org.sslsweep.TaskLabel;
import org.sslsweep.ThreadHygiene;
import org.sslsweep.leaver.Leaver;
import org.sslsweep.tomcat.Workers;

/** What guarding costs a task that leaves nothing, with one libcrypto in the process. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(3)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
public class TaskBenchmark {
    private static final TaskLabel LABEL = TaskLabel.of("benchmark");

    private Workers nio;
    private Workers nio2;
    private Workers apr;
    private int operation;

    /** Brings libcrypto in, and has it found. */
    @Setup
    public void prepare() {
        Leaver.leave(1);
        Leaver.drain();
        if (ThreadHygiene.snapshot().contains("\"libraries\":[]")) {
            throw new IllegalStateException("no libcrypto is bound: there would be nothing to measure");
        }
        operation = TaskHooks.label("benchmark/tls-read");
        nio = Workers.nio();
        nio2 = Workers.nio2();
        apr = Workers.apr();
    }

    /** Ends the pools. */
    @TearDown
    public void end() {
        nio.close();
        nio2.close();
        apr.close();
    }

    /** What all else is compared with. */
    @Benchmark
    public void emptyNativeCall() {
        NativeCall.nothing();
    }

    /** An application's own guard. */
    @Benchmark
    @SuppressWarnings("try") // the guard is used by its end alone
    public void guard() {
        try (Guard guard = ThreadHygiene.guard(LABEL)) {
            // Nothing: what is measured is the guard.
        }
    }

    /** A worker's task, NIO. */
    @Benchmark
    public void taskNio() {
        nio.runTask();
    }

    /** A worker's task, NIO2. */
    @Benchmark
    public void taskNio2() {
        nio2.runTask();
    }

    /** A worker's task, APR. */
    @Benchmark
    public void taskApr() {
        apr.runTask();
    }

    /** One TLS operation of the engine. */
    @Benchmark
    public void tlsOperation() {
        TaskHooks.exitOperation(operation, TaskHooks.enterOperation(operation));
    }
}
