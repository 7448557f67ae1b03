package org.sslsweep.tomcat;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.Map;
import javax.management.ObjectName;
import org.apache.catalina.Lifecycle;
import org.apache.catalina.LifecycleException;
import org.apache.catalina.Valve;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.startup.Tomcat;
import org.apache.coyote.ProtocolHandler;
import org.apache.tomcat.util.IntrospectionUtils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.sslsweep.Policy;
import org.sslsweep.Release;
import org.sslsweep.ThreadHygiene;

class HygieneListenerTest {
    @TempDir
    java.nio.file.Path base;
    private final HygieneListener listener = new HygieneListener();
    private final Tomcat tomcat = new Tomcat();

    @AfterEach
    void end() throws LifecycleException {
        if (tomcat.getServer().getState().isAvailable()) {
            tomcat.stop();
        }
        tomcat.destroy();
        ThreadHygiene.setPolicy(Policy.CLEAR);
        ThreadHygiene.setRelease(Release.DEFAULT);
    }

    private Connector plainConnector() {
        tomcat.setBaseDir(base.toString());
        Connector connector = new Connector();
        connector.setPort(0);
        tomcat.setConnector(connector);
        return connector;
    }

    private static boolean hasMBean() throws Exception {
        return ManagementFactory.getPlatformMBeanServer().isRegistered(new ObjectName("org.sslsweep:type=Hygiene"));
    }

    @Test
    void hasAnMBeanWhileTomcatRuns() throws Exception {
        plainConnector();
        tomcat.getServer().addLifecycleListener(listener);
        for (int round = 0; round < 3; round++) {
            tomcat.start();
            assertTrue(hasMBean());
            tomcat.stop();
            assertEquals(false, hasMBean());
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"server", "service", "engine", "connector"})
    void mayBeAddedToEachOfThese(String where) throws Exception {
        Connector connector = plainConnector();
        Map<String, Lifecycle> all = Map.of("server", tomcat.getServer(), "service", tomcat.getService(), "engine",
                tomcat.getEngine(), "connector", connector);
        all.get(where).addLifecycleListener(listener);
        for (int round = 0; round < 2; round++) {
            tomcat.start();
            assertTrue(hasMBean());
            assertTrue(Arrays.asList(connector.findLifecycleListeners()).contains(listener));
            tomcat.stop();
            assertEquals(false, hasMBean());
        }
    }

    @Test
    void hearsOfConnectorsThatAreAddedLater() throws Exception {
        plainConnector();
        tomcat.getServer().addLifecycleListener(listener);
        tomcat.start();
        Connector later = new Connector();
        later.setPort(0);
        tomcat.getService().addConnector(later);
        assertTrue(Arrays.asList(later.findLifecycleListeners()).contains(listener));
    }

    @Test
    void hasNoneWhereItIsTold() throws Exception {
        plainConnector();
        listener.setJmx(false);
        tomcat.getServer().addLifecycleListener(listener);
        tomcat.start();
        assertEquals(false, hasMBean());
    }

    @Test
    void leavesPlainConnectorsAlone() throws Exception {
        Connector connector = plainConnector();
        tomcat.getServer().addLifecycleListener(listener);
        tomcat.start();
        ProtocolHandler handler = connector.getProtocolHandler();
        assertInstanceOf(org.apache.tomcat.util.threads.ThreadPoolExecutor.class, handler.getExecutor());
        assertEquals(false, handler.getExecutor() instanceof Guarding);
        Valve[] valves = tomcat.getEngine().getPipeline().getValves();
        assertTrue(Arrays.stream(valves).noneMatch(valve -> valve instanceof CheckpointValve));
    }

    @Test
    void setsPolicyAndRelease() throws Exception {
        plainConnector();
        // As Tomcat's parser sets them.
        IntrospectionUtils.setProperty(listener, "observeOnly", "true");
        IntrospectionUtils.setProperty(listener, "release", "thread-exit");
        tomcat.getServer().addLifecycleListener(listener);
        tomcat.start();
        assertEquals(Policy.OBSERVE, ThreadHygiene.policy());
        assertEquals(Release.THREAD_EXIT, ThreadHygiene.release());
    }

    @ParameterizedTest
    @CsvSource({"policy,wipe", "observeOnly,yes", "release,always", "label,{prt}", "jmx,1"})
    void stopsTheStartOnAValueThatIsNone(String name, String value) {
        plainConnector();
        IntrospectionUtils.setProperty(listener, name, value);
        tomcat.getServer().addLifecycleListener(listener);
        Throwable problem = assertThrows(LifecycleException.class, tomcat::start);
        while (problem.getCause() != null) {
            problem = problem.getCause();
        }
        assertTrue(problem.getMessage().contains(name + "=\"" + value + "\""), problem.getMessage());
    }
}
