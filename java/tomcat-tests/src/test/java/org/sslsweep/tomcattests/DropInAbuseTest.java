package org.sslsweep.tomcattests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Each native of our libtcnative-2.so is called with what it must not be called with, under {@code -Xcheck:jni}: what
 * comes of it is in {@code natives.tsv}, and the JVM goes on.
 */
class DropInAbuseTest {
    private static final String PREFIX = "Java_org_apache_tomcat_jni_";
    /** Called around all others. */
    private static final Set<String> LIFE = Set.of("Library.initialize", "Library.terminate");

    @TempDir
    private Path folder;

    @Test
    void eachNativeAnswersAbuseAsDocumentedAndTomcatsNativesAreThoseExported() throws Exception {
        Map<String, String> outcomes = new TreeMap<>();
        Set<String> newest = new TreeSet<>();
        for (DropInKind kind : List.of(DropInKind.TOMCAT9_NIO, DropInKind.TOMCAT9_CURRENT_NIO, DropInKind.TOMCAT10_NIO,
                DropInKind.TOMCAT10_CURRENT_NIO, DropInKind.TOMCAT11_NIO)) {
            Map<String, String> own = abuse(kind.program().classPath());
            if (kind == DropInKind.TOMCAT10_CURRENT_NIO) {
                newest.addAll(own.keySet());
            }
            own.forEach((name, outcome) -> {
                String other = outcomes.putIfAbsent(name, outcome);
                assertTrue(other == null || other.equals(outcome), name + ": " + other + " and, on " + kind + ", " + outcome);
            });
        }
        outcomes.putAll(abuse(ownClass()));

        Set<String> exports = exports();
        assertEquals(Set.of(), without(exports, outcomes.keySet(), LIFE), "exported, and declared by no Tomcat");
        // Old ones of Tomcat 9 that no Tomcat calls are not there; natives.tsv says which.
        Set<String> missing = without(outcomes.keySet(), exports, Set.of("after terminate"));
        missing.forEach(name -> assertTrue(outcomes.get(name).contains(UnsatisfiedLinkError.class.getSimpleName()), name));
        // Tomcat 10.1 has none that it does not call.
        assertEquals(Set.of(), without(newest, exports, Set.of("after terminate")), "declared by the newest, and missing");

        String found = outcomes.entrySet().stream().map(entry -> entry.getKey() + "\t" + entry.getValue() + "\n")
                .collect(Collectors.joining());
        String documented = new String(
                DropInAbuseTest.class.getResourceAsStream("natives.tsv").readAllBytes(), StandardCharsets.UTF_8);
        assertEquals(documented.lines().filter(line -> !line.startsWith("#")).collect(Collectors.joining("\n")),
                found.strip());
    }

    /** The names of natives on a class path, and what came of each. */
    private static Map<String, String> abuse(String classPath) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(Folders.java()));
        command.addAll(JavaProcess.CHECKS);
        command.addAll(List.of("-cp", Path.of(NativeAbuse.class.getProtectionDomain().getCodeSource().getLocation().getPath()) + File.pathSeparator + classPath, NativeAbuse.class.getName(),
                DropIn.library().toString()));
        JavaProcess process = new JavaProcess(new ProcessBuilder(command));
        Map<String, String> outcomes = new TreeMap<>();
        String line = process.answer();
        for (; !line.startsWith("calls\t"); line = process.answer()) {
            String[] parts = line.split("\t", 2);
            outcomes.put(parts[0], parts[1]);
        }
        assertEquals(0, process.awaitEnd());
        assertEquals(List.of(), process.jni().all(), "what -Xcheck:jni said");
        return outcomes;
    }

    /** A class that declares what no Tomcat does. */
    private String ownClass() throws IOException {
        Path source = folder.resolve("org/apache/tomcat/jni/SSL.java");
        Files.createDirectories(source.getParent());
        Files.writeString(source, "package org.apache.tomcat.jni; class SSL {"
                + " static native void threadCleanup(); static native int initialize(String engine); }");
        assertEquals(0, ToolProvider.getSystemJavaCompiler().run(null, null, null, source.toString()));
        return folder.toString();
    }

    private static Set<String> without(Set<String> all, Set<String> some, Set<String> others) {
        Set<String> rest = new TreeSet<>(all);
        rest.removeAll(some);
        rest.removeAll(others);
        return rest;
    }

    private static Set<String> exports() throws IOException {
        try (var lines = Files.lines(Folders.JAVA.resolveSibling("exports/libtcnative-2.txt"))) {
            return lines.map(line -> line.substring(PREFIX.length()).replaceFirst("_", "."))
                    .collect(Collectors.toCollection(TreeSet::new));
        }
    }
}
