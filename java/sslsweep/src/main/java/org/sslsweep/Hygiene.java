package org.sslsweep;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import javax.management.JMException;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/** The MBean. It has no state of its own: all is the process's. */
final class Hygiene implements HygieneMXBean {
    /** Name of the MBean. */
    static final String NAME = "org.sslsweep:type=Hygiene";

    /** Those who have registered it and not taken it back. */
    private static int users;

    private Hygiene() {}

    static synchronized void register() {
        if (users == 0) {
            try {
                server().registerMBean(new Hygiene(), new ObjectName(NAME));
            } catch (JMException problem) {
                throw new IllegalStateException("cannot register the MBean " + NAME + ": " + problem
                        + ". If another copy of sslsweep has registered it, keep one copy only", problem);
            }
        }
        users++;
    }

    static synchronized void unregister() {
        if (users == 0) {
            return;
        }
        users--;
        if (users == 0) {
            try {
                server().unregisterMBean(new ObjectName(NAME));
            } catch (JMException gone) {
                // Somebody else has taken it away, which is what was asked for.
            }
        }
    }

    private static MBeanServer server() {
        return ManagementFactory.getPlatformMBeanServer();
    }

    private static Figures figures() {
        return new Figures(Natives.snapshot());
    }

    @Override
    public String getVersion() {
        return Natives.version();
    }

    @Override
    public String[] getLibraries() {
        return figures().libraries().toArray(new String[0]);
    }

    @Override
    public long getTasks() {
        return figures().sum("tasks");
    }

    @Override
    public long getDirtyTasks() {
        return figures().sum("dirty_tasks");
    }

    @Override
    public long getLeftovers() {
        return figures().sum("leftovers");
    }

    @Override
    public long getArrivals() {
        return figures().sum("arrivals");
    }

    @Override
    public long getThreadStates() {
        return figures().threadStates();
    }

    @Override
    public String[] getFindings() {
        return figures().findings().toArray(new String[0]);
    }

    @Override
    public Policy getPolicy() {
        return ThreadHygiene.policy();
    }

    @Override
    public void setPolicy(Policy policy) {
        ThreadHygiene.setPolicy(policy);
    }

    @Override
    public Release getRelease() {
        return ThreadHygiene.release();
    }

    @Override
    public void setRelease(Release release) {
        ThreadHygiene.setRelease(release);
    }

    @Override
    public String getSnapshotJson() {
        return Natives.snapshot();
    }

    @Override
    public String getPrometheusText() {
        return Natives.prometheus();
    }

    @Override
    public List<LeftoverEntry> leftovers(int top) {
        if (top < 1) {
            throw new IllegalArgumentException("leftovers(" + top + "): ask for one or more");
        }
        List<LeftoverEntry> entries = new ArrayList<>();
        for (String json : Natives.leftovers(top)) {
            entries.add(Figures.leftover(json));
        }
        return entries;
    }

    @Override
    public List<TaskEntry> tasks() {
        return figures().tasks();
    }

    @Override
    public void reset() {
        Natives.reset();
    }
}
