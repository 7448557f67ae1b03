package org.sslsweep.testserver;

import java.io.IOException;
import java.util.Arrays;
import javax.servlet.AsyncContext;
import javax.servlet.ServletOutputStream;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;
import org.sslsweep.leaver.Leaver;

/**
 * Answers {@code chunks} times 4,096 bytes, each written and flushed by the application's thread, which leaves
 * {@code leave} errors before each.
 */
public class AsyncServlet extends HttpServlet {
    private static final long serialVersionUID = 1L;

    private final transient ApplicationThread application;

    AsyncServlet(ApplicationThread application) {
        this.application = application;
    }

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) {
        int chunks = LeaveServlet.number(request, "chunks");
        int leave = LeaveServlet.number(request, "leave");
        AsyncContext async = request.startAsync();
        async.setTimeout(0);
        application.run(() -> {
            try {
                ServletOutputStream out = async.getResponse().getOutputStream();
                byte[] chunk = new byte[4096];
                for (int i = 0; i < chunks; i++) {
                    Arrays.fill(chunk, (byte) i);
                    Leaver.leave(leave);
                    out.write(chunk);
                    out.flush();
                }
            } catch (IOException e) {
                getServletContext().log("async write failed", e);
            } finally {
                async.complete();
            }
        });
    }
}
