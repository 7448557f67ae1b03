package org.sslsweep.testserver;

import com.sun.jna.Native;

/**
 * The CPU time of this process, all threads together, in nanoseconds.
 *
 * <p>The JVM's own figure ({@code getProcessCpuTime}) counts in ticks of 10 ms, the length of a whole round.
 */
final class ProcessClock {
    private static final int CLOCK_PROCESS_CPUTIME_ID = 2;

    static {
        Native.register(ProcessClock.class, "c");
    }

    private ProcessClock() {}

    /** Nanoseconds of CPU that this process has used. Throws IllegalStateException where the kernel has no such clock. */
    static long nanoseconds() {
        long[] time = new long[2];
        if (clock_gettime(CLOCK_PROCESS_CPUTIME_ID, time) != 0) {
            throw new IllegalStateException("the kernel does not tell the CPU time of this process");
        }
        return time[0] * 1_000_000_000L + time[1];
    }

    private static native int clock_gettime(int clock, long[] time);
}
