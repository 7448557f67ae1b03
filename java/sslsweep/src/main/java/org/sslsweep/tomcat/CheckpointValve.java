package org.sslsweep.tomcat;

import java.io.IOException;
import org.apache.catalina.connector.Connector;
import org.apache.catalina.connector.Request;
import org.apache.catalina.connector.Response;
import org.apache.catalina.valves.ValveBase;
import org.apache.coyote.ProtocolHandler;
import org.sslsweep.TaskHooks;

/**
 * On the APR connector, records what a servlet has left when it reads, writes and returns: the native code there empties
 * the queue first. Elsewhere the guarded TLS engine sees to that. {@link HygieneListener} adds it to the engine of an APR
 * connector; requests of other connectors are passed on.
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
        ProtocolHandler handler = connector == null ? null : connector.getProtocolHandler();
        // Where its executor is not ours, no task is entered whose errors these would be.
        boolean guarded = AprCheckpoints.areFor(handler) && handler.getExecutor() instanceof Guarding;
        if (guarded) {
            AprCheckpoints.put(request.getCoyoteRequest(), label);
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
                // The next to write for an asynchronous request is the application.
                AprCheckpoints.recorded(request.getCoyoteRequest(), !request.isAsync());
            }
        }
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> T same(Throwable problem) throws T {
        throw (T) problem;
    }
}
