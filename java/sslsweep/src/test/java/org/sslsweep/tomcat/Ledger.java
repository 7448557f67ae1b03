package org.sslsweep.tomcat;

import java.lang.management.ManagementFactory;
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
        ThreadHygiene.registerMBean();
        try {
            HygieneMXBean bean = JMX.newMXBeanProxy(ManagementFactory.getPlatformMBeanServer(),
                    new ObjectName("org.sslsweep:type=Hygiene"), HygieneMXBean.class);
            for (TaskEntry entry : bean.tasks()) {
                if (entry.getLabel().equals(label)) {
                    return entry.getTasks();
                }
            }
            return 0;
        } finally {
            ThreadHygiene.unregisterMBean();
        }
    }
}
