package org.sslsweep.testserver;

import com.dynatrace.hash4j.hashing.HashStream64;
import com.dynatrace.hash4j.hashing.Hashing;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;

/** Answers each PUT as {@code sslsweep load} expects it: bytes of the body, and its XXH3-64 in hexadecimal. */
final class LoadServlet extends HttpServlet {
    private static final long serialVersionUID = 1;
    private static final int PIECE = 64 << 10;

    /** What a worker needs for a body. */
    private static final class Tools {
        final byte[] piece = new byte[PIECE];
        final HashStream64 hash = Hashing.xxh3_64().hashStream();
    }

    private final transient ThreadLocal<Tools> tools = ThreadLocal.withInitial(Tools::new);

    @Override
    protected void doPut(HttpServletRequest request, HttpServletResponse response) throws IOException {
        Tools tools = this.tools.get();
        HashStream64 hash = tools.hash.reset();
        InputStream body = request.getInputStream();
        long bytes = 0;
        try {
            for (int read = body.read(tools.piece); read >= 0; read = body.read(tools.piece)) {
                hash.putBytes(tools.piece, 0, read);
                bytes += read;
            }
        } catch (IOException cut) {
            // A misbehaving client; Tomcat closes the connection, and would print a stack trace for each.
            return;
        }
        byte[] answer = answer(bytes, hash.getAsLong()).getBytes(StandardCharsets.ISO_8859_1);
        response.setContentType("application/json");
        response.setContentLength(answer.length);
        response.getOutputStream().write(answer);
    }

    private static String answer(long bytes, long hash) {
        String digits = Long.toHexString(hash);
        return "{\"bytes\":" + bytes + ",\"xxh3\":\"" + "0".repeat(16 - digits.length()) + digits + "\"}";
    }
}
