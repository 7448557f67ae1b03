package org.sslsweep.testserver;

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** The application's own thread: it writes to connections, and no connector knows it. */
final class ApplicationThread {
    private final ExecutorService executor = Executors.newSingleThreadExecutor(task -> {
        Thread thread = new Thread(task, "application");
        thread.setDaemon(true);
        return thread;
    });

    void run(Runnable task) {
        executor.execute(task);
    }

    void end() {
        executor.shutdownNow();
    }
}
