package org.sslsweep.testserver;

import java.io.IOException;
import java.io.InputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;

/** Reads a body; answers its length and its SHA-256. */
public class PutServlet extends HttpServlet {
    private static final long serialVersionUID = 1L;

    @Override
    protected void doPut(HttpServletRequest request, HttpServletResponse response) throws IOException {
        response.setContentType("text/plain");
        response.getWriter().print(digest(request.getInputStream()));
    }

    /** {@code LENGTH SHA256} of what the stream still has. */
    static String digest(InputStream in) throws IOException {
        MessageDigest sha256;
        try {
            sha256 = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
        byte[] buffer = new byte[64 * 1024];
        long length = 0;
        for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
            sha256.update(buffer, 0, n);
            length += n;
        }
        StringBuilder text = new StringBuilder().append(length).append(' ');
        for (byte b : sha256.digest()) {
            text.append(String.format("%02x", b));
        }
        return text.toString();
    }
}
