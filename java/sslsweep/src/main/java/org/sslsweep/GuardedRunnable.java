package org.sslsweep;

import java.util.Objects;

/** A task with its guard. */
final class GuardedRunnable implements Runnable {
    private final TaskLabel label;
    private final Runnable task;

    GuardedRunnable(TaskLabel label, Runnable task) {
        this.label = Objects.requireNonNull(label, "label");
        this.task = Objects.requireNonNull(task, "task");
    }

    @Override
    public void run() {
        ThreadHygiene.run(label, task);
    }

    @Override
    public String toString() {
        return task + " guarded as \"" + label + "\"";
    }
}
