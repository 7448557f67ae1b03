package org.sslsweep;

import java.io.IOException;
import java.io.InputStream;
import java.lang.System.Logger.Level;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.List;
import java.util.stream.Collectors;

/** The library that the jar brings: unpacked into a folder that nobody else may enter, and removed when loaded. */
final class JarLibrary {
    /** Names the folder to unpack in, instead of {@code java.io.tmpdir}. */
    static final String WORK_PROPERTY = "org.sslsweep.workdir";

    private static final String ELSEWHERE = "name a folder with room, on a file system that allows execution, by -D"
            + WORK_PROPERTY + "=FOLDER; or unpack the library from the jar yourself, and name it by -D"
            + NativeLoader.LIBRARY_PROPERTY + "=FILE";

    private JarLibrary() {}

    /** Loads it; returns a name for it. {@code searched}: folders that were searched before, for the message. */
    static String load(List<Path> searched) {
        String resource = "META-INF/native/linux-" + Platform.architecture() + "/" + NativeLoader.FILE_NAME;
        try (InputStream in = JarLibrary.class.getResourceAsStream("/" + resource)) {
            if (in == null) {
                throw absent(resource, searched);
            }
            unpackAndLoad(in);
        } catch (IOException problem) {
            throw NativeLoader.error("cannot read " + resource + " in the jar of sslsweep (" + problem
                    + "); take the jar from the release again", problem);
        }
        return resource + " of the jar";
    }

    private static UnsatisfiedLinkError absent(String resource, List<Path> searched) {
        String folders = searched.stream().map(Path::toString).collect(Collectors.joining(", "));
        return NativeLoader.error("there is no " + NativeLoader.FILE_NAME + " for Linux on " + Platform.architecture()
                + ": no " + resource + " in the jar, and none in java.library.path (" + folders
                + "). Build it (cargo build --release), and name it by -D" + NativeLoader.LIBRARY_PROPERTY + "=FILE",
                null);
    }

    private static void unpackAndLoad(InputStream in) {
        Path folder = null;
        Path file = null;
        try {
            folder = makeFolder();
            file = folder.resolve(NativeLoader.FILE_NAME);
            Files.copy(in, file);
            NativeFile.load(file, ELSEWHERE);
        } catch (IOException | RuntimeException problem) {
            throw NativeLoader.error("cannot unpack the library in " + workText() + " (" + problem + "): " + ELSEWHERE,
                    problem);
        } finally {
            // A library that is loaded needs its file no more.
            remove(file);
            remove(folder);
        }
    }

    static Path makeFolder() throws IOException {
        Path work = Path.of(workText()).toAbsolutePath();
        // Private from the start: the name of a file to be loaded must not be another user's to take.
        return Files.createTempDirectory(work, "sslsweep-",
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------")));
    }

    private static String workText() {
        return System.getProperty(WORK_PROPERTY, System.getProperty("java.io.tmpdir", "/tmp"));
    }

    private static void remove(Path path) {
        try {
            if (path != null) {
                Files.deleteIfExists(path);
            }
        } catch (IOException problem) {
            System.getLogger("org.sslsweep").log(Level.WARNING, "cannot remove " + path, problem);
        }
    }
}
