package org.sslsweep;

import java.io.IOException;
import java.nio.file.Path;

/** Loads one file, and says in plain words why it cannot. */
final class NativeFile {
    private NativeFile() {}

    /** What to do where a file's place is the trouble, when the operator chose it. */
    static final String ELSEWHERE =
            "put the library elsewhere, and name it by -D" + NativeLoader.LIBRARY_PROPERTY + "=FILE";

    /**
     * Loads the library in {@code file}. Throws UnsatisfiedLinkError, with a text for the operator.
     *
     * @param elsewhere what to do where the file's place is the trouble
     */
    static void load(Path file, String elsewhere) {
        check(file);
        try {
            System.load(file.toString());
        } catch (UnsatisfiedLinkError problem) {
            throw NativeLoader.error("the JVM cannot load " + file + ": " + reason(file, problem)
                    + advice(problem, elsewhere), problem);
        } catch (RuntimeException problem) {
            // JDK 24 and later, told to deny: IllegalCallerException, which 11 has too.
            throw NativeLoader.error("the JVM refuses to load " + file + ": " + problem.getMessage()
                    + ". Start it with --enable-native-access=ALL-UNNAMED", problem);
        }
    }

    /** The loader's own words: the JVM and the linker each put the path before them. */
    private static String reason(Path file, UnsatisfiedLinkError problem) {
        String text = String.valueOf(problem.getMessage());
        String path = file + ": ";
        while (text.startsWith(path)) {
            text = text.substring(path.length());
        }
        return text;
    }

    static String advice(UnsatisfiedLinkError problem, String elsewhere) {
        String text = String.valueOf(problem.getMessage());
        if (text.contains("failed to map segment") || text.contains("Operation not permitted")) {
            return ". Its file system may be mounted noexec: " + elsewhere;
        }
        if (text.contains("already loaded")) {
            return ". Keep one copy of the jar of sslsweep, where all applications see it, and restart the JVM";
        }
        if (text.contains("libc.musl") || text.contains("GLIBC_") || text.contains("ld-linux")) {
            return ". It is made for another C library than this system's; build it here (cargo build --release), and"
                    + " name it by -D" + NativeLoader.LIBRARY_PROPERTY + "=FILE";
        }
        return "";
    }

    private static void check(Path file) {
        ElfFile elf;
        try {
            elf = ElfFile.read(file);
        } catch (IOException problem) {
            throw NativeLoader.error("cannot read " + file + " (" + problem + "). It must be a file that the user "
                    + System.getProperty("user.name") + " may read", problem);
        }
        String own = Platform.architecture();
        if (elf.architecture == null) {
            throw NativeLoader.error(file + " is no library for Linux: it does not begin as one. Take it from the"
                    + " release again", null);
        }
        if (!elf.architecture.equals(own)) {
            throw NativeLoader.error(file + " is made for " + elf.architecture + ", and this JVM for " + own
                    + ". Take the library of the JVM's architecture, or a JVM of the library's", null);
        }
        if (elf.size < elf.neededSize) {
            throw NativeLoader.error(file + " is cut off: it has " + elf.size + " bytes and needs " + elf.neededSize
                    + " or more. Copy it again, and see that there is room", null);
        }
    }
}
