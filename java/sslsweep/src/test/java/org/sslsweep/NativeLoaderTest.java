package org.sslsweep;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;
import java.util.List;
import java.util.jar.JarOutputStream;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Where the library is loaded from, and what is said when it cannot be. Each in a JVM of its own. */
class NativeLoaderTest {
    private static final String RESOURCE = "/META-INF/native/linux-x86_64/" + NativeLoader.FILE_NAME;

    @TempDir
    Path folder;
    private Path library;

    @BeforeEach
    void unpack() throws IOException {
        library = folder.resolve(NativeLoader.FILE_NAME);
        try (InputStream in = NativeLoader.class.getResourceAsStream(RESOURCE)) {
            Files.copy(in, library);
        }
    }

    private static ChildJvm child() {
        // The JVM that runs the tests may have one set; a path of the machine may hold anything.
        return new ChildJvm().property("java.library.path", "");
    }

    private static String report(ChildJvm child) throws Exception {
        return child.run(LoadReport.class);
    }

    private static void assertLoaded(String output, String from) {
        assertTrue(output.contains("reason: null") && output.contains("depth: 0"), output);
        assertTrue(output.contains("loaded: " + from + ", version 0."), output);
    }

    private static void assertSays(String output, String... texts) {
        assertTrue(output.contains("kept: java.lang.UnsatisfiedLinkError"), output);
        for (String text : texts) {
            assertTrue(output.contains(text), () -> "no \"" + text + "\" in: " + output);
        }
        // What is not loaded must not stand in another copy's way.
        assertTrue(output.contains("loaded: null"), output);
    }

    @Test
    void takesTheFileThatIsNamed() throws Exception {
        Path other = Files.move(library, folder.resolve("other.so"));
        assertLoaded(report(child().property(NativeLoader.LIBRARY_PROPERTY, other)), other.toString());
    }

    @Test
    void takesTheFolderThatIsNamed() throws Exception {
        assertLoaded(report(child().property(NativeLoader.LIBRARY_PROPERTY, folder)), library.toString());
    }

    @Test
    void searchesTheLibraryPath() throws Exception {
        Path empty = Files.createDirectory(folder.resolve("empty"));
        assertLoaded(report(child().property("java.library.path", empty + "::" + folder)), library.toString());
    }

    @Test
    void unpacksTheJarsIntoAFolderThatIsGoneAfterwards() throws Exception {
        Path work = Files.createDirectory(folder.resolve("work"));
        String output = report(child().property("java.io.tmpdir", work));
        assertLoaded(output, RESOURCE.substring(1) + " of the jar");
        assertTrue(output.contains("mapped: " + work.toRealPath() + "/sslsweep-"), output);
        try (Stream<Path> left = Files.list(work)) {
            assertEquals(List.of(), left.collect(Collectors.toList()));
        }
    }

    @Test
    void theJarAloneIsEnough() throws Exception {
        Path classes = codeSource(NativeLoader.class);
        Path jar = folder.resolve("sslsweep.jar");
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(jar));
                Stream<Path> files = Files.walk(classes)) {
            for (Path file : (Iterable<Path>) files.filter(Files::isRegularFile)::iterator) {
                out.putNextEntry(new ZipEntry(classes.relativize(file).toString()));
                Files.copy(file, out);
                out.closeEntry();
            }
        }
        ChildJvm child = child().only(jar, codeSource(LoadReport.class)).property("java.io.tmpdir", folder);
        String output = report(child);
        assertLoaded(output, RESOURCE.substring(1) + " of the jar");
        assertTrue(output.contains(" from file:" + jar), output);
    }

    private static Path codeSource(Class<?> of) throws Exception {
        return Path.of(of.getProtectionDomain().getCodeSource().getLocation().toURI());
    }

    @Test
    void metersKeepNoApplicationFromStarting() throws Exception {
        String output = child().property(NativeLoader.LIBRARY_PROPERTY, folder.resolve("none")).run(MeterReport.class);
        assertTrue(output.contains("no meters of sslsweep: there is no " + folder.resolve("none")), output);
        assertTrue(output.contains("meters=0"), output);
        assertFalse(child().run(MeterReport.class).contains("meters=0"));
    }

    @Test
    void saysThatANamedFileIsNotThere() throws Exception {
        Path none = folder.resolve("none.so");
        assertSays(report(child().property(NativeLoader.LIBRARY_PROPERTY, none)), "there is no " + none,
                "-D" + NativeLoader.LIBRARY_PROPERTY + "=" + none);
    }

    @Test
    void saysThatAFileIsNoLibrary() throws Exception {
        Files.writeString(library, "#!/bin/sh\nexit 0 # no library\n");
        assertSays(report(child().property(NativeLoader.LIBRARY_PROPERTY, library)), "no library for Linux");
        Files.write(library, new byte[] {0x7f, 'E', 'L'});
        assertSays(report(child().property(NativeLoader.LIBRARY_PROPERTY, library)), "no library for Linux");
    }

    @Test
    void saysThatALibraryIsCutOff() throws Exception {
        byte[] whole = Files.readAllBytes(library);
        // Without the check the JVM loads the longer ones, and dies where it touches what is missing.
        long needed = ElfFile.read(library).neededSize;
        assertTrue(needed > 100_000 && needed <= whole.length, () -> "needs " + needed);
        for (long size : new long[] {100, 5_000, needed / 2, needed - 1}) {
            Files.write(library, Arrays.copyOf(whole, (int) size));
            assertSays(report(child().property("java.library.path", folder)), library + " is cut off: it has " + size);
        }
    }

    @Test
    void saysThatALibraryIsOfAnotherArchitecture() throws Exception {
        byte[] whole = Files.readAllBytes(library);
        whole[18] = (byte) 183;
        Files.write(library, whole);
        assertSays(report(child().property("java.library.path", folder)),
                library + " is made for aarch64, and this JVM for x86_64");
    }

    @Test
    void saysThatTheSystemIsAnother() throws Exception {
        assertSays(report(child().property("os.name", "Windows Server 2022")), "works on Linux only",
                "Windows Server 2022");
    }

    @Test
    void saysThatTheJarHasNoneForTheArchitecture() throws Exception {
        Path empty = Files.createDirectory(folder.resolve("empty"));
        assertSays(report(child().property("os.arch", "riscv64").property("java.library.path", empty)),
                "no META-INF/native/linux-riscv64/libsslsweep.so in the jar", empty.toString(),
                "-D" + NativeLoader.LIBRARY_PROPERTY + "=FILE");
    }

    @Test
    void saysThatVersionsDiffer() throws Exception {
        Path properties = Files.createDirectories(folder.resolve("org/sslsweep")).resolve("version.properties");
        Files.writeString(properties, "version=99.9\n");
        assertSays(report(child().first(folder)), "but the jar is version 99.9", "from one release");
    }

    @Test
    void saysThatALibraryIsNotOurs() throws Exception {
        Path leaver = folder.resolve("leaver.so");
        try (InputStream in = NativeLoader.class.getResourceAsStream(
                "/META-INF/native/linux-x86_64/libsslsweep_leaver.so")) {
            Files.copy(in, leaver);
        }
        assertSays(report(child().property(NativeLoader.LIBRARY_PROPERTY, leaver)), "has no natives for Java");
    }

    @Test
    void saysThatThereIsNoFolderToUnpackIn() throws Exception {
        Path none = folder.resolve("none");
        assertSays(report(child().property(JarLibrary.WORK_PROPERTY, none)), "cannot unpack the library in " + none,
                "-D" + JarLibrary.WORK_PROPERTY + "=FOLDER", "-D" + NativeLoader.LIBRARY_PROPERTY + "=FILE");
    }

    @Test
    void saysThatThereIsNoRoomToUnpack() throws Exception {
        Path work = Files.createDirectory(folder.resolve("work"));
        // No file may grow beyond 64 blocks of 512 bytes: as on a full file system, its first bytes are written.
        ChildJvm child = child().by("ulimit -f 64 && exec \"$@\"").property(JarLibrary.WORK_PROPERTY, work);
        assertSays(report(child.option("-XX:-UsePerfData")), "cannot unpack the library in " + work,
                "-D" + JarLibrary.WORK_PROPERTY + "=FOLDER");
        try (Stream<Path> left = Files.list(work)) {
            assertEquals(List.of(), left.collect(Collectors.toList()));
        }
    }

    @Test
    void unpacksWhereNobodyElseCanPutAnything() throws Exception {
        Path made = JarLibrary.makeFolder();
        try {
            assertEquals("rwx------", PosixFilePermissions.toString(Files.getPosixFilePermissions(made)));
        } finally {
            Files.delete(made);
        }
    }

    @Test
    void knowsTheLinkersWordsForNoExecution() {
        String text = NativeFile.advice(new UnsatisfiedLinkError(
                "/x/libsslsweep.so: failed to map segment from shared object: Operation not permitted"),
                "go elsewhere");
        assertTrue(text.contains("noexec: go elsewhere"), text);
    }

    @Test
    void saysThatTheFileSystemAllowsNoExecution() throws Exception {
        boolean mayMount = new ProcessBuilder("unshare", "-rm", "true").start().waitFor() == 0;
        // Where a container forbids to mount, its /dev/shm forbids to execute.
        Path work = Files.createTempDirectory(mayMount ? folder : Path.of("/dev/shm"), "work");
        try {
            ChildJvm child = child().property(JarLibrary.WORK_PROPERTY, work);
            String output = report(mayMount
                    ? child.by("exec unshare -rm sh -c 'mount -t tmpfs -o noexec tmpfs " + work + " && exec \"$@\"' sh \"$@\"")
                    : child);
            assertSays(output, "cannot load " + work, "failed to map segment", "noexec",
                    "-D" + JarLibrary.WORK_PROPERTY + "=FOLDER", "-D" + NativeLoader.LIBRARY_PROPERTY + "=FILE");
        } finally {
            Files.delete(work);
        }
    }

    @Test
    void refusesASecondCopy() throws Exception {
        String output = child().run(TwoLoaders.class);
        assertTrue(output.contains("first: null"), output);
        String first = "java.net.URLClassLoader@" + identity(output, "first") + " from file:";
        for (String name : new String[] {"second", "third"}) {
            String line = line(output, name + ": ");
            assertTrue(line.contains("in this JVM already") && line.contains(first), line);
            assertTrue(line.contains("by java.net.URLClassLoader@" + identity(output, name)), line);
            assertTrue(line.contains("WEB-INF/lib"), line);
        }
    }

    @Test
    void aCopyThatFailedStandsInNobodysWay() throws Exception {
        String output = child().property(NativeLoader.LIBRARY_PROPERTY, folder.resolve("none"))
                .run(TwoLoaders.class, "without the property after the first");
        assertTrue(line(output, "first: ").contains("there is no "), output);
        assertTrue(output.contains("second: null"), output);
        assertTrue(line(output, "third: ").contains("in this JVM already"), output);
    }

    private static String identity(String output, String name) {
        return line(output, name + " is ").substring((name + " is ").length());
    }

    private static String line(String output, String start) {
        return output.lines().filter(line -> line.startsWith(start)).findFirst()
                .orElseThrow(() -> new AssertionError("no line \"" + start + "\" in: " + output));
    }

    @Test
    void readsArchitecturesOfBothByteOrders() {
        byte[] header = new byte[20];
        assertNull(ElfFile.architectureOf(header, header.length));
        header[0] = 0x7f;
        header[1] = 'E';
        header[2] = 'L';
        header[3] = 'F';
        header[4] = 2;
        header[5] = 2;
        header[19] = 22;
        assertEquals("s390x", ElfFile.architectureOf(header, header.length));
        header[5] = 1;
        assertEquals("machine 5632", ElfFile.architectureOf(header, header.length));
        header[18] = 2;
        header[19] = 1;
        assertEquals("loongarch64", ElfFile.architectureOf(header, header.length));
        assertNull(ElfFile.architectureOf(header, 19));
    }
}
