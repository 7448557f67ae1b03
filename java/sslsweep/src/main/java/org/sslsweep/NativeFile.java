package org.sslsweep;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;

/** Loads one file, and says in plain words why it cannot. */
final class NativeFile {
    /** Bytes of the header up to the machine. */
    private static final int HEADER = 20;

    private NativeFile() {}

    /** Loads the library in {@code file}. Throws UnsatisfiedLinkError, with a text for the operator. */
    static void load(Path file) {
        checkArchitecture(file);
        try {
            System.load(file.toString());
        } catch (UnsatisfiedLinkError problem) {
            throw NativeLoader.error("the JVM cannot load " + file + ": " + problem.getMessage() + advice(problem),
                    problem);
        } catch (RuntimeException problem) {
            // JDK 24 and later, told to deny: IllegalCallerException, which 11 has too.
            throw NativeLoader.error("the JVM refuses to load " + file + ": " + problem.getMessage()
                    + ". Start it with --enable-native-access=ALL-UNNAMED", problem);
        }
    }

    private static String advice(UnsatisfiedLinkError problem) {
        String text = String.valueOf(problem.getMessage());
        if (text.contains("failed to map segment") || text.contains("Operation not permitted")) {
            return ". Its file system may be mounted noexec; put the library elsewhere, and name it by -D"
                    + NativeLoader.LIBRARY_PROPERTY + "=FILE";
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

    private static void checkArchitecture(Path file) {
        byte[] header;
        try (InputStream in = Files.newInputStream(file)) {
            header = in.readNBytes(HEADER);
        } catch (IOException problem) {
            throw NativeLoader.error("cannot read " + file + " (" + problem + "). It must be a file that the user "
                    + System.getProperty("user.name") + " may read", problem);
        }
        String found = architectureOf(header);
        String own = Platform.architecture();
        if (found == null) {
            throw NativeLoader.error(file + " is no library for Linux: it does not begin as one. It may be cut off;"
                    + " take it from the release again", null);
        }
        if (!found.equals(own)) {
            throw NativeLoader.error(file + " is made for " + found + ", and this JVM for " + own
                    + ". Take the library of the JVM's architecture, or a JVM of the library's", null);
        }
    }

    /** The architecture that an ELF file's first bytes tell; null where they are not those of an ELF file. */
    static String architectureOf(byte[] header) {
        boolean elf = header.length >= HEADER && header[0] == 0x7f && header[1] == 'E' && header[2] == 'L'
                && header[3] == 'F';
        if (!elf) {
            return null;
        }
        boolean is64 = header[4] == 2;
        boolean bigEndian = header[5] == 2;
        int low = header[bigEndian ? 19 : 18] & 0xff;
        int high = header[bigEndian ? 18 : 19] & 0xff;
        int machine = high << 8 | low;
        switch (machine) {
            case 3:
                return "x86";
            case 21:
                return bigEndian ? "ppc64" : "ppc64le";
            case 22:
                return "s390x";
            case 40:
                return "arm";
            case 62:
                return is64 ? "x86_64" : "x32";
            case 183:
                return "aarch64";
            case 243:
                return is64 ? "riscv64" : "riscv32";
            case 258:
                return is64 ? "loongarch64" : "loongarch32";
            default:
                return "machine " + machine;
        }
    }
}
