package org.sslsweep;

import javax.management.ConstructorParameters;

/** Figures of the tasks of one label. */
public final class TaskEntry {
    private final String label;
    private final long tasks;
    private final long dirtyTasks;
    private final long leftovers;
    private final long arrivals;
    private final boolean atLeast;

    /** For the MBean server, which gives back what it has read. */
    @ConstructorParameters({"label", "tasks", "dirtyTasks", "leftovers", "arrivals", "atLeast"})
    public TaskEntry(String label, long tasks, long dirtyTasks, long leftovers, long arrivals, boolean atLeast) {
        this.label = label;
        this.tasks = tasks;
        this.dirtyTasks = dirtyTasks;
        this.leftovers = leftovers;
        this.arrivals = arrivals;
        this.atLeast = atLeast;
    }

    /** The label. */
    public String getLabel() {
        return label;
    }

    /** Tasks that ended. */
    public long getTasks() {
        return tasks;
    }

    /** Those that left errors. */
    public long getDirtyTasks() {
        return dirtyTasks;
    }

    /** Errors that they left. */
    public long getLeftovers() {
        return leftovers;
    }

    /** Errors that were there when a task began. */
    public long getArrivals() {
        return arrivals;
    }

    /** Whether there may have been more, because a queue was full. */
    public boolean isAtLeast() {
        return atLeast;
    }
}
