package org.sslsweep.testserver;

import java.io.IOException;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.sslsweep.leaver.Leaver;

/**
 * Leaves {@code before} errors, reads the body, leaves {@code during} errors and sends its answer, leaves {@code after}
 * errors. Answers as {@link PutServlet} does, and then whether the queue held errors when the request began.
 */
public class LeaveServlet extends HttpServlet {
    private static final long serialVersionUID = 1L;

    @Override
    protected void doPut(HttpServletRequest request, HttpServletResponse response) throws IOException {
        boolean dirty = Leaver.isDirty();
        Leaver.leave(number(request, "before"));
        String digest = PutServlet.digest(request.getInputStream());
        response.setContentType("text/plain");
        response.getWriter().print(digest + (dirty ? " dirty" : " clean"));
        int during = number(request, "during");
        if (during > 0) {
            Leaver.leave(during);
            response.flushBuffer();
        }
        Leaver.leave(number(request, "after"));
    }

    /** A parameter of the query; 0 where it is missing. */
    static int number(HttpServletRequest request, String name) {
        String value = request.getParameter(name);
        return value == null ? 0 : Integer.parseInt(value);
    }
}
