package org.sslsweep;

import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** What guards and labels take of memory. */
class CostTest {
    @Test
    void aGuardedTaskAllocatesNothing() throws Exception {
        // The JVM's checks would have natives called another way.
        String output = new ChildJvm().without("-Xcheck:jni").run(Allocations.class);
        assertTrue(output.contains("guards: none") && output.contains("runs: none"), output);
        // The control: where the JIT may not leave the guard away, it is seen.
        output = new ChildJvm().without("-Xcheck:jni").option("-XX:-DoEscapeAnalysis").run(Allocations.class, "50");
        assertTrue(output.matches("(?s).*guards: \\d+ bytes a task.*runs: \\d+ bytes a task.*"), output);
    }

    @Test
    void aFloodOfLabelsIsBounded() throws Exception {
        String output = new ChildJvm().run(Flood.class);
        assertTrue(output.contains("known=1 cached=true late-cached=false first=1 "), output);
        assertTrue(output.contains(" labels=256"), output);
        assertTrue(output.matches("(?s).*others=49\\d{3} .*"), output);
    }
}
