package org.sslsweep.tomcattests;

import java.util.ArrayList;
import java.util.List;

/** What {@code -Xcheck:jni}, and a JVM that crashes, have said on a standard error. */
final class JniReport {
    private static final String OURS = "org.sslsweep.";
    /** The tests' own programs; their frames are below everything. */
    private static final List<String> TESTS = List.of("org.sslsweep.testserver.", "org.sslsweep.leaver.");

    private final List<String> blocks = new ArrayList<>();

    JniReport(String text) {
        List<String> block = new ArrayList<>();
        for (String line : text.split("\n")) {
            boolean frame = line.startsWith("\tat ") || line.startsWith("\t- ");
            if (block.isEmpty() || !frame) {
                end(block);
            }
            if (starts(line) || !block.isEmpty()) {
                block.add(line);
            }
        }
        end(block);
    }

    private void end(List<String> block) {
        if (!block.isEmpty()) {
            blocks.add(String.join("\n", block));
            block.clear();
        }
    }

    private static boolean starts(String line) {
        return line.startsWith("WARNING in native method:") || line.startsWith("WARNING: JNI ")
                || line.startsWith("FATAL ERROR in native method:") || line.startsWith("# A fatal error has been detected")
                || line.startsWith("# Problematic frame:") || line.startsWith("Warning: SIG")
                || line.contains("libsslsweep.so+0x");
    }

    /** All that was said, a block each: a warning and its stack. */
    List<String> all() {
        return List.copyOf(blocks);
    }

    /**
     * What our code is to blame for: the native method that was warned about is ours, or a frame just above a JNI
     * function is; and each crash.
     */
    List<String> ours() {
        List<String> ours = new ArrayList<>();
        for (String block : blocks) {
            String[] lines = block.split("\n");
            if (lines[0].startsWith("#") || lines[0].startsWith("FATAL") || lines[0].contains("libsslsweep")) {
                ours.add(block);
            } else if (lines.length > 1 && isOurs(lines[1])) {
                ours.add(block);
            }
        }
        return ours;
    }

    private static boolean isOurs(String frame) {
        String method = frame.replace("\tat ", "");
        return method.startsWith(OURS) && TESTS.stream().noneMatch(method::startsWith);
    }
}
