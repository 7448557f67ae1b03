package org.sslsweep;

import java.util.Locale;

/** The operating system and the architecture that this JVM is made for. */
final class Platform {
    private Platform() {}

    /** Throws where there is no library at all. */
    static void check() {
        String system = System.getProperty("os.name", "");
        if (!system.equals("Linux")) {
            throw new UnsatisfiedLinkError("sslsweep works on Linux only, and this JVM runs on " + system
                    + ". Remove its jar from this installation, and its lines from the configuration");
        }
    }

    /** The architecture, by one name for each. */
    static String architecture() {
        String name = System.getProperty("os.arch", "").toLowerCase(Locale.ROOT);
        switch (name) {
            case "amd64":
            case "x86-64":
                return "x86_64";
            case "i386":
            case "i486":
            case "i586":
            case "i686":
                return "x86";
            case "arm64":
                return "aarch64";
            default:
                return name;
        }
    }
}
