package org.sslsweep;

import java.util.Date;
import javax.management.ConstructorParameters;

/** One kind of leftover of one label: the same reason in the same library. The last one is described. */
public final class LeftoverEntry {
    private final String label;
    private final String reason;
    private final long leftovers;
    private final long arrivals;
    private final boolean atLeast;
    private final String library;
    private final String benign;
    private final Date first;
    private final Date last;
    private final String thread;
    private final long threadId;
    private final String source;
    private final String data;
    private final Long connection;

    /** For the MBean server, which gives back what it has read. */
    @ConstructorParameters({"label", "reason", "leftovers", "arrivals", "atLeast", "library", "benign", "first", "last",
        "thread", "threadId", "source", "data", "connection"})
    public LeftoverEntry(String label, String reason, long leftovers, long arrivals, boolean atLeast, String library,
            String benign, Date first, Date last, String thread, long threadId, String source, String data,
            Long connection) {
        this.label = label;
        this.reason = reason;
        this.leftovers = leftovers;
        this.arrivals = arrivals;
        this.atLeast = atLeast;
        this.library = library;
        this.benign = benign;
        this.first = new Date(first.getTime());
        this.last = new Date(last.getTime());
        this.thread = thread;
        this.threadId = threadId;
        this.source = source;
        this.data = data;
        this.connection = connection;
    }

    /** Label of the tasks. */
    public String getLabel() {
        return label;
    }

    /** What the error means. */
    public String getReason() {
        return reason;
    }

    /** Errors left by tasks. */
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

    /** File of the libcrypto in whose queue they were. */
    public String getLibrary() {
        return library;
    }

    /** Why it is no sign of a fault, where that is known; null otherwise. */
    public String getBenign() {
        return benign;
    }

    /** When it was seen first. */
    public Date getFirst() {
        return new Date(first.getTime());
    }

    /** When it was seen last. */
    public Date getLast() {
        return new Date(last.getTime());
    }

    /** Name of the thread that left the last one. */
    public String getThread() {
        return thread;
    }

    /** The kernel's number of that thread, as in a thread dump's {@code nid}. */
    public long getThreadId() {
        return threadId;
    }

    /** Where libcrypto raised the last one: file, line, function where it is known. */
    public String getSource() {
        return source;
    }

    /** Text that came with the last one; null where there was none. */
    public String getData() {
        return data;
    }

    /** The connection that the last one's task worked for; null where none is known. */
    public Long getConnection() {
        return connection;
    }
}
