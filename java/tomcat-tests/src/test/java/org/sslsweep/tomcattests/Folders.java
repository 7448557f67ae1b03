package org.sslsweep.tomcattests;

import java.nio.file.Path;
import java.nio.file.Paths;

/** Where things are; Maven tells by system properties. */
final class Folders {
    /** The folder java/ of the repository. */
    static final Path JAVA = named("sslsweep.java.folder");
    /** Unpacked Debian packages. */
    static final Path DEBIAN = named("sslsweep.debian.folder");
    /** Where cargo has put the native libraries. */
    static final Path NATIVE = named("sslsweep.libraries");
    /** Debian's folder of libtcnative-1.so. */
    static final Path TCNATIVE = Paths.get("/usr/lib/x86_64-linux-gnu");

    private Folders() {}

    /** The program of the Java that runs the tests. */
    static String java() {
        return Paths.get(System.getProperty("java.home"), "bin", "java").toString();
    }

    static String java25() {
        return named("sslsweep.java25.home").resolve("bin/java").toString();
    }

    private static Path named(String property) {
        String value = System.getProperty(property);
        if (value == null) {
            throw new IllegalStateException("run the tests by Maven: system property " + property + " is missing");
        }
        return Paths.get(value).toAbsolutePath().normalize();
    }
}
