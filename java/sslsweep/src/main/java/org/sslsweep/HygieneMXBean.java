package org.sslsweep;

import java.util.List;

/**
 * What the guards of this process have found, and how they act; {@code org.sslsweep:type=Hygiene}.
 *
 * <p>Each attribute takes a look of its own at the process, which takes about a millisecond: read the attributes that
 * you need. Counts are those since the start of the process or the last {@link #reset}.
 */
public interface HygieneMXBean {
    /** Version of the native library. */
    String getVersion();

    /** Every libcrypto that is swept: path, release line, version. */
    String[] getLibraries();

    /** Tasks that ended. */
    long getTasks();

    /** Tasks that left errors in an error queue. */
    long getDirtyTasks();

    /** Errors that tasks left. */
    long getLeftovers();

    /** Errors that were there when a task began: left by code without a guard. */
    long getArrivals();

    /** Thread states alive, of all libraries together; -1 where no library tells. */
    long getThreadStates();

    /** What all this means, and what to do next: a line each, warnings first. */
    String[] getFindings();

    /** The policy of tasks that have none of their own. */
    Policy getPolicy();

    /** Sets it for tasks that begin from now on, those of Tomcat's connectors too. */
    void setPolicy(Policy policy);

    /** The release of tasks that have none of their own. */
    Release getRelease();

    /** Sets it for tasks that begin from now on, those of Tomcat's connectors too. */
    void setRelease(Release release);

    /** The whole snapshot, as {@code schemas/snapshot.schema.json} describes it. */
    String getSnapshotJson();

    /** The figures in Prometheus' text format. */
    String getPrometheusText();

    /**
     * What tasks have left, the most frequent first.
     *
     * @param top so many at most, 1 or more
     */
    List<LeftoverEntry> leftovers(int top);

    /** Figures of each label, the most leftovers first. */
    List<TaskEntry> tasks();

    /** Forgets what was recorded, for the whole process. */
    void reset();
}
