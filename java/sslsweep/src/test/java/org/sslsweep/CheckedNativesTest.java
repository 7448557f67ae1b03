package org.sslsweep;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;

/** The natives under the JVM's own checks; {@link ChildJvm#run} reads what those say. */
class CheckedNativesTest {
    @Test
    void noNativeMisusesTheJvm() throws Exception {
        String output = new ChildJvm().run(EveryNative.class);
        assertTrue(output.lines().anyMatch(line -> line.matches("tasks \\d+")), output);
        assertFalse(output.toLowerCase(java.util.Locale.ROOT).contains("warning"), output);
    }
}
