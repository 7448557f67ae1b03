package org.sslsweep.testserver;

import java.io.IOException;
import javax.servlet.ServletException;
import org.apache.catalina.connector.Request;
import org.apache.catalina.connector.Response;
import org.apache.catalina.valves.ValveBase;
import org.apache.coyote.ActionCode;

/** Has the client asked for its certificate, in the middle of the connection, where the query is {@code ask}. */
final class AskValve extends ValveBase {
    AskValve() {
        super(true);
    }

    @Override
    public void invoke(Request request, Response response) throws IOException, ServletException {
        if ("ask".equals(request.getQueryString())) {
            request.getCoyoteRequest().action(ActionCode.REQ_SSL_CERTIFICATE, null);
        }
        getNext().invoke(request, response);
    }
}
