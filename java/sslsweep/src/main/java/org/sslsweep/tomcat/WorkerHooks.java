package org.sslsweep.tomcat;

import org.sslsweep.TaskHooks;

/** Around each task of one connector's workers. */
final class WorkerHooks {
    private final ConnectorLabels labels;
    private final Phase other;

    /** @param other the phase of tasks that do not tell */
    WorkerHooks(ConnectorLabels labels, Phase other) {
        this.labels = labels;
        this.other = other;
    }

    int label(Runnable task) {
        return labels.of(SocketTasks.phase(task, other));
    }

    void before(Runnable task) {
        TaskHooks.enterRoot(label(task));
    }

    void after() {
        TaskHooks.exitRoot();
    }
}
