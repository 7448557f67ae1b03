package org.sslsweep.leaver;

import java.io.IOException;
import java.io.InputStream;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;

/**
 * Leaves errors in OpenSSL's error queue of the calling thread, as careless application code does. For tests.
 *
 * <p>The queue is that of the system's libcrypto, which is loaded if nothing else in the process has. On a virtual
 * thread it is the queue of the thread's carrier.
 */
public final class Leaver {
    private static final String LIBRARY = "libsslsweep_leaver.so";
    private static final String RESOURCE = "/META-INF/native/linux-x86_64/" + LIBRARY;

    /** A thread's queue holds so many errors; each one more pushes the oldest out. */
    public static final int MOST = 15;

    static {
        load();
    }

    private Leaver() {}

    /**
     * Leaves errors on the calling thread, each by one libcrypto call that fails.
     *
     * @param count how many, 0 or more
     * @throws IllegalArgumentException if {@code count} is negative
     * @throws IllegalStateException if libcrypto could not be brought to leave that many
     */
    public static void leave(int count) {
        if (count < 0) {
            throw new IllegalArgumentException("count is " + count + "; it must be 0 or more");
        }
        int left = leave0(count);
        if (left != count) {
            throw new IllegalStateException("libcrypto left " + left + " errors, not " + count);
        }
    }

    /** Whether the calling thread's queue holds an error. Changes nothing. */
    public static boolean isDirty() {
        return isDirty0();
    }

    /** Takes all errors out of the calling thread's queue; answers how many there were, at most {@link #MOST}. */
    public static int drain() {
        return drain0();
    }

    private static void load() {
        URL resource = Leaver.class.getResource(RESOURCE);
        if (resource == null) {
            throw new IllegalStateException(LIBRARY + " is not among the resources: build it (cargo build --release"
                    + " --package sslsweep-leaver), then this module, with -Dsslsweep.native.folder=FOLDER");
        }
        try {
            if (resource.getProtocol().equals("file")) {
                System.load(Paths.get(resource.toURI()).toString());
                return;
            }
            Path folder = Files.createTempDirectory("sslsweep-leaver");
            Path file = folder.resolve(LIBRARY);
            try (InputStream in = resource.openStream()) {
                Files.copy(in, file);
                System.load(file.toString());
            } finally {
                // Once loaded, the file is needed no more.
                Files.deleteIfExists(file);
                Files.delete(folder);
            }
        } catch (IOException | java.net.URISyntaxException e) {
            throw new IllegalStateException(LIBRARY + " could not be unpacked", e);
        }
    }

    private static native int leave0(int count);

    private static native boolean isDirty0();

    private static native int drain0();
}
