package org.sslsweep.tomcat;

import org.sslsweep.TaskHooks;
import org.sslsweep.leaver.Leaver;

/** The system's libcrypto, which sslsweep does not load by itself. */
final class Libcrypto {
    private Libcrypto() {}

    /** Loads it. From then on all guards know it, also those of threads which had tasks before it was there. */
    static void load() throws InterruptedException {
        Leaver.drain();
        // Looked for on a thread's first task, and seldom later.
        Thread first = new Thread(() -> {
            TaskHooks.enterRoot(TaskHooks.label("first task"));
            TaskHooks.exitRoot();
        });
        first.start();
        first.join();
    }
}
