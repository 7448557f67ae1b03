package org.sslsweep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Guards on virtual threads; on the Java that has them. */
@Tag("java25")
class VirtualThreadsTest {
    private static ChildJvm child() {
        // More carriers than threads that run at once, so that a thread that has rested finds another one.
        return new ChildJvm().property("jdk.virtualThreadScheduler.parallelism", 4);
    }

    private static long figure(String output, String name) {
        Matcher matcher = Pattern.compile("\\b" + name + "=(\\d+)").matcher(output);
        assertTrue(matcher.find(), () -> "no " + name + " in: " + output);
        return Long.parseLong(matcher.group(1));
    }

    /** Errors of all tasks. */
    private static long all() {
        long sum = 0;
        for (int number = 0; number < VirtualTasks.TASKS; number++) {
            sum += VirtualTasks.errors(number % VirtualTasks.LABELS);
        }
        return sum;
    }

    @Test
    void knowsAVirtualThread() throws Exception {
        AtomicBoolean virtual = new AtomicBoolean();
        VirtualTasks.start(() -> virtual.set(VirtualThreads.isCurrent())).join();
        assertTrue(virtual.get());
        assertFalse(VirtualThreads.isCurrent());
    }

    @Test
    void everyErrorIsCreditedToItsTask() throws Exception {
        String output = child().run(VirtualTasks.class);
        assertEquals(VirtualTasks.TASKS, figure(output, "tasks"), output);
        assertEquals(VirtualTasks.TASKS, figure(output, "dirty"), output);
        assertEquals(all(), figure(output, "leftovers"), output);
        assertEquals(0, figure(output, "arrivals"), output);
        assertEquals(VirtualTasks.LABELS, figure(output, "exact"), output);
        assertEquals(0, figure(output, "failed"), output);
        assertEquals(0, figure(output, "moved-inside"), output);
        assertEquals(1, figure(output, "elsewhere"), output);
        // Guards let their threads go again.
        assertTrue(figure(output, "moved-after") > 0, output);
        assertTrue(figure(output, "moved-after-misuse") > 0, output);
        assertFalse(output.contains("WARNING"), output);
    }

    /** The control: threads that are not kept do move, and then no task is blamed. */
    @Test
    void withoutPinningNothingIsCredited() throws Exception {
        String output = child().property(VirtualThreads.PIN_PROPERTY, false).run(VirtualTasks.class);
        assertTrue(figure(output, "moved-inside") > 0, output);
        assertEquals(0, figure(output, "tasks"), output);
        assertEquals(0, figure(output, "leftovers"), output);
        long arrivals = figure(output, "arrivals");
        // A carrier's last errors wait for a next task that does not come; a ring keeps 15.
        assertTrue(arrivals > all() / 2 && arrivals <= all(), output);
        assertEquals(1, output.lines().filter(line -> line.contains("do not keep virtual threads")).count(), output);
        assertTrue(output.contains("-D" + VirtualThreads.PIN_PROPERTY + "=false"), output);
    }

    @Test
    void saysThatNativeAccessIsDenied() throws Exception {
        String output = new ChildJvm().without("--enable-native-access=ALL-UNNAMED")
                .option("--illegal-native-access=deny").run(LoadReport.class);
        assertTrue(output.contains("Start it with --enable-native-access=ALL-UNNAMED"), output);
        assertTrue(output.contains("kept: java.lang.UnsatisfiedLinkError"), output);
    }
}
