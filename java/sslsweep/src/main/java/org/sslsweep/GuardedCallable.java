package org.sslsweep;

import java.util.Objects;
import java.util.concurrent.Callable;

/** A task with its guard. */
final class GuardedCallable<T> implements Callable<T> {
    private final TaskLabel label;
    private final Callable<T> task;

    GuardedCallable(TaskLabel label, Callable<T> task) {
        this.label = Objects.requireNonNull(label, "label");
        this.task = Objects.requireNonNull(task, "task");
    }

    @Override
    public T call() throws Exception {
        return ThreadHygiene.call(label, task);
    }

    @Override
    public String toString() {
        return task + " guarded as \"" + label + "\"";
    }
}
