package org.sslsweep.testserver;

import java.io.IOException;
import java.io.UncheckedIOException;
import javax.websocket.OnMessage;
import javax.websocket.Session;
import javax.websocket.server.ServerEndpoint;
import org.sslsweep.leaver.Leaver;

/**
 * Sends messages back: {@code TEXT} at once, {@code application N TEXT} by the application's thread, which leaves N
 * errors before.
 */
@ServerEndpoint(value = "/echo", configurator = ApplicationConfigurator.class)
public class EchoEndpoint {
    private final ApplicationThread application;

    EchoEndpoint(ApplicationThread application) {
        this.application = application;
    }

    @OnMessage
    public void message(Session session, String text) throws IOException {
        if (!text.startsWith("application ")) {
            session.getBasicRemote().sendText(text);
            return;
        }
        String[] parts = text.split(" ", 3);
        application.run(() -> {
            Leaver.leave(Integer.parseInt(parts[1]));
            try {
                session.getBasicRemote().sendText(parts[2]);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
    }
}
