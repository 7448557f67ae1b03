package org.sslsweep;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/**
 * Loads {@code libsslsweep.so}, once for the whole JVM.
 *
 * <p>The first place that names a library is the one that is used: the system property
 * {@value #LIBRARY_PROPERTY}, a folder of {@code java.library.path}, the jar. A library that is there and cannot be
 * used is an error, not a reason to look further: operators would not know which one they run.
 */
final class NativeLoader {
    /** Names the library's file, or the folder that it is in. */
    static final String LIBRARY_PROPERTY = "org.sslsweep.library";
    /** Set while a library is loaded: which file, and for whom. Two class loaders share nothing else. */
    static final String LOADED_PROPERTY = "org.sslsweep.loaded";
    /** The library's file name. */
    static final String FILE_NAME = "libsslsweep.so";

    private NativeLoader() {}

    /** Loads the library. Returns what kept it from being loaded, or null; throws nothing. */
    static Throwable tryLoad() {
        try {
            Platform.check();
            load();
            return null;
        } catch (Throwable problem) {
            return problem;
        }
    }

    private static void load() throws IOException {
        String jarVersion = jarVersion();
        String ours = "version " + jarVersion + ", loaded by " + describeLoader();
        // The library's counters are the process's: a second copy would have a ledger of its own, and either
        // would take the other's tasks for code without a guard.
        Object other = System.getProperties().putIfAbsent(LOADED_PROPERTY, ours);
        if (other != null) {
            throw new UnsatisfiedLinkError("sslsweep is in this JVM already (" + other
                    + "), and cannot be loaded again by " + describeLoader() + ". Keep one copy of its jar, where all"
                    + " applications see it (Tomcat: the server's lib folder, not WEB-INF/lib), and restart the JVM");
        }
        boolean done = false;
        try {
            String file = loadFirst();
            checkVersion(file, jarVersion);
            System.setProperty(LOADED_PROPERTY, file + ", " + ours);
            done = true;
        } finally {
            if (!done) {
                System.clearProperty(LOADED_PROPERTY);
            }
        }
    }

    /** Loads from the first place that has a library; returns the file's name. */
    private static String loadFirst() throws IOException {
        String given = System.getProperty(LIBRARY_PROPERTY);
        if (given != null) {
            Path file = given(given);
            NativeFile.load(file, NativeFile.ELSEWHERE);
            return file.toString();
        }
        List<Path> folders = libraryPath();
        for (Path folder : folders) {
            Path file = folder.resolve(FILE_NAME);
            if (Files.exists(file)) {
                NativeFile.load(file, NativeFile.ELSEWHERE);
                return file.toString();
            }
        }
        return JarLibrary.load(folders);
    }

    private static Path given(String text) {
        Path path;
        try {
            path = Path.of(text).toAbsolutePath();
        } catch (InvalidPathException problem) {
            throw error("-D" + LIBRARY_PROPERTY + "=" + text + " is no path: " + problem.getMessage(), problem);
        }
        Path file = Files.isDirectory(path) ? path.resolve(FILE_NAME) : path;
        if (!Files.exists(file)) {
            throw error("there is no " + file + ", which -D" + LIBRARY_PROPERTY + "=" + text
                    + " names. Give the path of " + FILE_NAME + " or of its folder; or leave the property away: then"
                    + " java.library.path and the jar are searched", null);
        }
        return file;
    }

    /** The folders of {@code java.library.path}; empty entries and what is no path are left out. */
    private static List<Path> libraryPath() {
        List<Path> folders = new ArrayList<>();
        for (String text : System.getProperty("java.library.path", "").split(File.pathSeparator)) {
            if (!text.isEmpty()) {
                try {
                    folders.add(Path.of(text).toAbsolutePath());
                } catch (InvalidPathException ignored) {
                    // Nothing can be in it.
                }
            }
        }
        return folders;
    }

    private static void checkVersion(String file, String jarVersion) {
        String version;
        try {
            version = Natives.version();
        } catch (UnsatisfiedLinkError problem) {
            throw error(file + " has no natives for Java: it is no " + FILE_NAME + ", or was built without them. Take"
                    + " the one that the jar brings (version " + jarVersion + ")", problem);
        }
        if (!jarVersion.equals(version)) {
            throw error(file + " is version " + version + ", but the jar is version " + jarVersion
                    + ". Take both from one release, or remove the file and the property " + LIBRARY_PROPERTY
                    + ": the jar brings a library of its own. Then restart the JVM", null);
        }
    }

    /** The version of the jar. */
    static String jarVersion() throws IOException {
        try (InputStream in = NativeLoader.class.getResourceAsStream("version.properties")) {
            if (in == null) {
                throw error("the jar of sslsweep has lost its version.properties; take it from the release again",
                        null);
            }
            Properties properties = new Properties();
            properties.load(in);
            return properties.getProperty("version", "(none)");
        }
    }

    private static String describeLoader() {
        ClassLoader loader = NativeLoader.class.getClassLoader();
        // Not its text: Tomcat's web application loaders print a page.
        String name = loader == null ? "the boot loader" : loader.getClass().getName() + "@"
                + Integer.toHexString(System.identityHashCode(loader));
        try {
            return name + " from " + NativeLoader.class.getProtectionDomain().getCodeSource().getLocation();
        } catch (SecurityException | NullPointerException unknown) {
            return name;
        }
    }

    static UnsatisfiedLinkError error(String text, Throwable cause) {
        UnsatisfiedLinkError error = new UnsatisfiedLinkError(text);
        error.initCause(cause);
        return error;
    }
}
