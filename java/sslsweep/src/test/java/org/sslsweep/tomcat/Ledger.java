package org.sslsweep.tomcat;

import java.lang.management.ManagementFactory;
import java.util.function.ToLongFunction;
import javax.management.JMX;
import javax.management.ObjectName;
import org.sslsweep.HygieneMXBean;
import org.sslsweep.TaskEntry;
import org.sslsweep.ThreadHygiene;

/** What the native library has counted. */
final class Ledger {
    private Ledger() {}

    /** Tasks of this label that have ended. */
    static long tasks(String label) throws Exception {
        return of(label, TaskEntry::getTasks);
    }

    /** Errors that tasks of this label have left. */
    static long leftovers(String label) throws Exception {
        return of(label, TaskEntry::getLeftovers);
    }

    private static long of(String label, ToLongFunction<TaskEntry> figure) throws Exception {
        ThreadHygiene.registerMBean();
        try {
            HygieneMXBean bean = JMX.newMXBeanProxy(ManagementFactory.getPlatformMBeanServer(),
                    new ObjectName("org.sslsweep:type=Hygiene"), HygieneMXBean.class);
            return bean.tasks().stream().filter(entry -> entry.getLabel().equals(label)).mapToLong(figure).sum();
        } finally {
            ThreadHygiene.unregisterMBean();
        }
    }
}
