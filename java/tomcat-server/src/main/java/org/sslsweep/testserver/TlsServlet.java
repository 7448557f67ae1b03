package org.sslsweep.testserver;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.cert.X509Certificate;
import javax.servlet.http.HttpServlet;
import javax.servlet.http.HttpServletRequest;
import javax.servlet.http.HttpServletResponse;

/** Answers what the server knows of the request's TLS: a line each, {@code NAME=VALUE}. */
public class TlsServlet extends HttpServlet {
    private static final long serialVersionUID = 1L;
    /** From Tomcat 10 on it has another first part. */
    private static final String PREFIX = HttpServletRequest.class.getName().replaceFirst("http\\..*", "request.");

    @Override
    protected void doGet(HttpServletRequest request, HttpServletResponse response) throws IOException {
        StringBuilder text = new StringBuilder();
        text.append("http=").append(request.getProtocol()).append('\n');
        text.append("protocol=").append(request.getAttribute("org.apache.tomcat.util.net.secure_protocol_version")).append('\n');
        text.append("cipher=").append(request.getAttribute(PREFIX + "cipher_suite")).append('\n');
        text.append("bits=").append(request.getAttribute(PREFIX + "key_size")).append('\n');
        text.append("session=").append(request.getAttribute(PREFIX + "ssl_session_id")).append('\n');
        X509Certificate[] certificates = (X509Certificate[]) request.getAttribute(PREFIX + "X509Certificate");
        if (certificates != null && certificates.length > 0) {
            text.append("client=").append(certificates[0].getSubjectX500Principal().getName()).append('\n');
        }
        byte[] answer = text.toString().getBytes(StandardCharsets.UTF_8);
        response.setContentType("text/plain");
        response.setContentLength(answer.length);
        response.getOutputStream().write(answer);
    }
}
