package org.sslsweep;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.util.Date;
import java.util.List;
import javax.management.Attribute;
import javax.management.JMX;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import javax.management.RuntimeMBeanException;
import javax.management.StandardMBean;
import javax.management.openmbean.CompositeData;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.sslsweep.leaver.Leaver;

/** The MBean as a console sees it: through the platform's server. */
class HygieneMXBeanTest {
    private static final MBeanServer SERVER = ManagementFactory.getPlatformMBeanServer();

    private ObjectName name;

    /** A task that is the first to meet a library is not swept: the library is found with the next one. */
    @BeforeAll
    static void loadLibcrypto() {
        Leaver.drain();
    }

    @BeforeEach
    void register() throws Exception {
        name = new ObjectName("org.sslsweep:type=Hygiene");
        ThreadHygiene.registerMBean();
    }

    @AfterEach
    void unregister() {
        ThreadHygiene.unregisterMBean();
        assertFalse(SERVER.isRegistered(name));
        ThreadHygiene.setPolicy(Policy.CLEAR);
        ThreadHygiene.setRelease(Release.DEFAULT);
    }

    private HygieneMXBean bean() {
        return JMX.newMXBeanProxy(SERVER, name, HygieneMXBean.class);
    }

    @Test
    void severalUsersShareIt() {
        ThreadHygiene.registerMBean();
        ThreadHygiene.registerMBean();
        ThreadHygiene.unregisterMBean();
        assertTrue(SERVER.isRegistered(name));
        ThreadHygiene.unregisterMBean();
        assertTrue(SERVER.isRegistered(name));
        ThreadHygiene.unregisterMBean();
        assertFalse(SERVER.isRegistered(name));
        ThreadHygiene.unregisterMBean();
        ThreadHygiene.registerMBean();
        assertTrue(SERVER.isRegistered(name));
    }

    @Test
    void saysThatTheNameIsTaken() throws Exception {
        ThreadHygiene.unregisterMBean();
        SERVER.registerMBean(new StandardMBean(() -> { }, Runnable.class), name);
        String text = assertThrows(IllegalStateException.class, ThreadHygiene::registerMBean).getMessage();
        assertTrue(text.contains("org.sslsweep:type=Hygiene") && text.contains("one copy"), text);
        SERVER.unregisterMBean(name);
        ThreadHygiene.registerMBean();
    }

    @Test
    void everyAttributeIsAnOpenType() throws Exception {
        ThreadHygiene.run("mbean: attributes", () -> Leaver.leave(1));
        for (MBeanAttributeInfo attribute : SERVER.getMBeanInfo(name).getAttributes()) {
            assertTrue(attribute.getType().matches("long|java.lang.String|\\[Ljava.lang.String;"), attribute::toString);
            SERVER.getAttribute(name, attribute.getName());
        }
        assertEquals(NativeLoader.jarVersion(), SERVER.getAttribute(name, "Version"));
        String[] libraries = (String[]) SERVER.getAttribute(name, "Libraries");
        assertTrue(libraries[0].matches("/.*libcrypto\\.so\\.\\S+ \\(3\\.x, .*\\)"), libraries[0]);
        assertTrue((long) SERVER.getAttribute(name, "ThreadStates") > 0);
        assertTrue(((String) SERVER.getAttribute(name, "SnapshotJson")).startsWith("{\"time\""));
        assertTrue(((String) SERVER.getAttribute(name, "PrometheusText")).contains("sslsweep_tasks_total{"));
        String findings = String.join("\n", (String[]) SERVER.getAttribute(name, "Findings"));
        assertTrue(findings.contains("mbean: attributes") || findings.contains("left errors"), findings);
    }

    @Test
    void countsWhatGuardsSee() {
        HygieneMXBean bean = bean();
        long tasks = bean.getTasks();
        long dirty = bean.getDirtyTasks();
        long leftovers = bean.getLeftovers();
        long arrivals = bean.getArrivals();
        Leaver.leave(2);
        ThreadHygiene.run("mbean: counts", () -> Leaver.leave(3));
        ThreadHygiene.run("mbean: counts", () -> { });
        assertArrayEquals(new long[] {tasks + 2, dirty + 1, leftovers + 3, arrivals + 2},
                new long[] {bean.getTasks(), bean.getDirtyTasks(), bean.getLeftovers(), bean.getArrivals()});
    }

    @Test
    void listsTasksAndLeftovers() throws Exception {
        long before = System.currentTimeMillis();
        for (int round = 0; round < 100; round++) {
            ThreadHygiene.run("mbean: most", () -> Leaver.leave(15));
        }
        ThreadHygiene.run("mbean: less", () -> Leaver.leave(1));
        List<LeftoverEntry> entries = bean().leftovers(1);
        assertEquals(1, entries.size());
        LeftoverEntry most = entries.get(0);
        assertEquals("mbean: most", most.getLabel());
        assertEquals(1500, most.getLeftovers());
        assertTrue(most.isAtLeast());
        assertEquals(0, most.getArrivals());
        assertTrue(most.getReason().contains("no start line"), most.getReason());
        assertTrue(most.getBenign() != null);
        assertTrue(most.getLibrary().contains("libcrypto.so.3"), most.getLibrary());
        assertTrue(most.getSource().matches("\\S+\\.c:\\d+( \\(\\w+\\))?"), most.getSource());
        assertFalse(most.getThread().isEmpty());
        assertEquals(null, most.getConnection());
        assertFalse(most.getFirst().before(new Date(before)) || most.getLast().before(most.getFirst()));

        CompositeData[] raw = (CompositeData[]) SERVER.invoke(
                name, "leftovers", new Object[] {1000}, new String[] {"int"});
        assertTrue(raw.length >= 2);
        assertEquals("mbean: most", raw[0].get("label"));
        TaskEntry task = bean().tasks().stream()
                .filter(entry -> entry.getLabel().equals("mbean: less")).findFirst().get();
        assertEquals(1, task.getTasks());
        assertEquals(1, task.getLeftovers());
        assertThrows(RuntimeMBeanException.class,
                () -> SERVER.invoke(name, "leftovers", new Object[] {0}, new String[] {"int"}));
    }

    @Test
    void policyAndReleaseChangeAtRunTime() throws Exception {
        SERVER.setAttribute(name, new Attribute("Policy", "OBSERVE"));
        SERVER.setAttribute(name, new Attribute("Release", "NEVER"));
        assertEquals(Policy.OBSERVE, ThreadHygiene.policy());
        assertEquals(Release.NEVER, ThreadHygiene.release());
        ThreadHygiene.run("mbean: policy", () -> Leaver.leave(1));
        assertEquals(1, ThreadHygiene.queueDepth());
        bean().setPolicy(Policy.CLEAR);
        assertEquals("CLEAR", SERVER.getAttribute(name, "Policy"));
        assertThrows(Exception.class, () -> SERVER.setAttribute(name, new Attribute("Policy", "NONE")));
        assertEquals(1, Leaver.drain());
    }

    @Test
    void resetStartsAnew() {
        ThreadHygiene.run("mbean: reset", () -> Leaver.leave(1));
        assertEquals(1, Ledger.leftovers("mbean: reset"));
        bean().reset();
        assertEquals(0, Ledger.leftovers("mbean: reset"));
        assertEquals(0, Ledger.of("mbean: reset").getTasks());
        ThreadHygiene.run("mbean: reset", () -> Leaver.leave(2));
        assertEquals(2, Ledger.leftovers("mbean: reset"));
        assertEquals(1, bean().getTasks());
    }
}
