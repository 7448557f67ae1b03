package org.sslsweep.tomcattests;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.sun.tools.attach.AttachNotSupportedException;
import com.sun.tools.attach.VirtualMachine;
import java.io.IOException;
import javax.management.JMException;
import javax.management.MBeanServerConnection;
import javax.management.ObjectName;
import javax.management.remote.JMXConnector;
import javax.management.remote.JMXConnectorFactory;
import javax.management.remote.JMXServiceURL;

/** The MBeans of another JVM, as an operator's console sees them. */
final class Management implements AutoCloseable {
    private static final String HYGIENE = "org.sslsweep:type=Hygiene";

    private final JMXConnector connector;
    private final MBeanServerConnection server;

    private Management(JMXConnector connector) throws IOException {
        this.connector = connector;
        server = connector.getMBeanServerConnection();
    }

    static Management of(JavaProcess process) throws IOException, AttachNotSupportedException {
        VirtualMachine machine = VirtualMachine.attach(Long.toString(process.pid()));
        try {
            return new Management(JMXConnectorFactory.connect(new JMXServiceURL(machine.startLocalManagementAgent())));
        } finally {
            machine.detach();
        }
    }

    /** The port that the system chose for the TLS connector. */
    int tlsPort() throws IOException, JMException {
        for (ObjectName name : server.queryNames(new ObjectName("Catalina:type=Connector,*"), null)) {
            if ("https".equals(server.getAttribute(name, "scheme"))) {
                return (Integer) server.getAttribute(name, "localPort");
            }
        }
        throw new IOException("there is no TLS connector");
    }

    Ledger ledger() throws IOException, JMException {
        String json = (String) server.getAttribute(new ObjectName(HYGIENE), "SnapshotJson");
        return new Ledger(new ObjectMapper().readTree(json));
    }

    void reset() throws IOException, JMException {
        server.invoke(new ObjectName(HYGIENE), "reset", new Object[0], new String[0]);
    }

    @Override
    public void close() throws IOException {
        connector.close();
    }
}
