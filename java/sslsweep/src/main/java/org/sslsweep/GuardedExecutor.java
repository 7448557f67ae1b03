package org.sslsweep;

import java.util.Objects;
import java.util.concurrent.Executor;

/** Hands tasks on, each with a guard. */
class GuardedExecutor implements Executor {
    final TaskLabel label;
    private final Executor executor;

    GuardedExecutor(TaskLabel label, Executor executor) {
        this.label = Objects.requireNonNull(label, "label");
        this.executor = Objects.requireNonNull(executor, "executor");
    }

    @Override
    public void execute(Runnable task) {
        executor.execute(new GuardedRunnable(label, task));
    }

    @Override
    public String toString() {
        return executor + " guarded as \"" + label + "\"";
    }
}
