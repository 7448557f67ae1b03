package org.sslsweep;

import java.lang.System.Logger.Level;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * One task on the thread that made the guard. Closing it ends the task, and sweeps.
 *
 * <p>Not thread-safe, and bound to its thread. Made for try-with-resources; the JIT then leaves no object of it. One
 * that is never closed stays entered: later guards of its thread (of a virtual thread: its carrier) nest inside it, and
 * after 64 of them the thread has no guards any more, which the log says once. Worker threads that Tomcat's hooks watch
 * end it with the task.
 */
public final class Guard implements AutoCloseable {
    /** Token of a virtual thread that is not pinned: no task is entered, its ends are checkpoints. */
    private static final long CHECKPOINTS = 0;
    private static final AtomicBoolean SAID = new AtomicBoolean();

    private final TaskLabel label;
    private final int options;
    private final long token;
    /** The virtual thread that it belongs to; null on other threads, whose natives know. */
    private final Thread virtual;
    private boolean closed;

    private Guard(TaskLabel label, int options, long token, Thread virtual) {
        this.label = label;
        this.options = options;
        this.token = token;
        this.virtual = virtual;
    }

    static Guard enter(TaskLabel label, int options, long connection) {
        Natives.ensureLoaded();
        // Before the thread is pinned: it throws where there is no label.
        int number = label.number();
        Thread virtual = null;
        boolean stays = true;
        if (VirtualThreads.isCurrent()) {
            virtual = Thread.currentThread();
            stays = VirtualThreads.pin();
        }
        long token;
        if (!stays) {
            Natives.checkpoint(number, options);
            token = CHECKPOINTS;
        } else {
            token = Natives.enter(number, options, connection);
        }
        if (token < 0) {
            sayUnguarded(label, token);
        }
        // One place that makes the object: where two paths meet, the JIT would keep it.
        return new Guard(label, options, token, virtual);
    }

    /**
     * Ends the task: records and clears what it left, as its policy says. Tasks that were entered inside it and not
     * ended end with it.
     *
     * @throws IllegalStateException when it is closed already, or was ended with a task around it, or this is not the
     *     thread that made it
     * @throws DirtyTaskException by the policy {@link Policy#ASSERT}, when the task left errors
     */
    @Override
    public void close() {
        if (closed) {
            throw closedTwice(label);
        }
        if (virtual != null && virtual != Thread.currentThread()) {
            throw notHere(label);
        }
        int left;
        if (token > 0) {
            left = Natives.exit(token);
            if (left == Natives.UNBALANCED && virtual == null) {
                // It may still be closed where it belongs.
                throw notHere(label);
            }
        } else if (token == CHECKPOINTS) {
            left = Natives.checkpoint(label.number(), options);
        } else {
            left = 0;
        }
        closed = true;
        if (virtual != null && token != CHECKPOINTS) {
            Natives.unpin();
        }
        if (left != 0) {
            judge(label, options, token, left);
        }
    }

    private static void judge(TaskLabel label, int options, long token, int left) {
        if (left == Natives.UNBALANCED) {
            throw notHere(label);
        }
        // What a checkpoint finds on a thread that moves may be another task's: nobody is blamed.
        if (left > 0 && Options.isAssert(options) && token != CHECKPOINTS) {
            throw new DirtyTaskException(label.text(), left);
        }
        if (left == Natives.INTERNAL) {
            sayUnguarded(label, left);
        }
    }

    private static IllegalStateException closedTwice(TaskLabel label) {
        return new IllegalStateException("the guard of task \"" + label + "\" is closed already; close it once, best by"
                + " try-with-resources");
    }

    private static IllegalStateException notHere(TaskLabel label) {
        return new IllegalStateException("the guard of task \"" + label + "\" does not guard a task of this thread (\""
                + Thread.currentThread().getName() + "\"): close it on the thread that made it, before the guards"
                + " around it, best by try-with-resources; for work that goes on on another thread, make one there");
    }

    private static void sayUnguarded(TaskLabel label, long answer) {
        if (answer != Natives.THREAD_ENDING && SAID.compareAndSet(false, true)) {
            System.getLogger("org.sslsweep").log(Level.WARNING, "task \"" + label + "\" on thread \""
                    + Thread.currentThread().getName() + "\" is not guarded: " + (answer == Natives.TOO_DEEP
                    ? "more than 64 guards of this thread are open. Look for one that is never closed"
                    : "sslsweep failed inside (" + answer + "); please report it") + ". This is said once");
        }
    }
}
