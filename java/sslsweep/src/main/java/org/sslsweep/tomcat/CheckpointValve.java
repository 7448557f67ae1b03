package org.sslsweep.tomcat;

import java.io.IOException;
import java.util.concurrent.Executor;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.connector.Request;
import org.apache.catalina.connector.Response;
import org.apache.catalina.valves.ValveBase;
import org.sslsweep.TaskHooks;

/**
 * Records what a servlet has left when it returns, and on the APR connector when it reads and writes: the native code
 * there empties the queue first. {@link HygieneListener} adds it to the engine.
 */
public class CheckpointValve extends ValveBase {
    private final int label = TaskHooks.label("servlet");

    /** Needs the native library. */
    public CheckpointValve() {
        super(true);
    }

    /** {@inheritDoc} Throws what the request throws. */
    @Override
    public void invoke(Request request, Response response) throws IOException {
        Connector connector = request.getConnector();
        Executor executor = connector == null ? null : connector.getProtocolHandler().getExecutor();
        // Elsewhere no task is entered whose errors these would be.
        boolean guarded = executor instanceof Guarding && !TaskHooks.onVirtualThread();
        if (guarded) {
            AprCheckpoints.put(connector.getProtocolHandler(), request.getCoyoteRequest(), label);
        }
        try {
            getNext().invoke(request, response);
        } catch (Throwable problem) {
            // ServletException must not be named: its package differs between Tomcat 9 and later ones, and whoever
            // lists the methods of this class (JMX does) would have to load it.
            throw CheckpointValve.<RuntimeException>same(problem);
        } finally {
            if (guarded) {
                TaskHooks.checkpoint(label);
            }
        }
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> T same(Throwable problem) throws T {
        throw (T) problem;
    }
}
