package org.sslsweep.tomcattests;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.WebSocket;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** A WebSocket to the server's echo, on Java's own TLS. */
final class Echo implements AutoCloseable, WebSocket.Listener {
    private final BlockingQueue<String> messages = new LinkedBlockingQueue<>();
    private final StringBuilder partial = new StringBuilder();
    private WebSocket socket;

    private Echo() {}

    static Echo open(int port) throws Exception {
        Echo echo = new Echo();
        echo.socket = HttpClient.newBuilder().sslContext(Connection.context()).build().newWebSocketBuilder()
                .buildAsync(URI.create("wss://127.0.0.1:" + port + "/echo"), echo)
                .get(JavaProcess.PATIENCE_SECONDS, TimeUnit.SECONDS);
        return echo;
    }

    /** Sends a message; answers the next one that comes. */
    String exchange(String text) throws Exception {
        socket.sendText(text, true).get(JavaProcess.PATIENCE_SECONDS, TimeUnit.SECONDS);
        String answer = messages.poll(JavaProcess.PATIENCE_SECONDS, TimeUnit.SECONDS);
        if (answer == null) {
            throw new IOException("no answer to " + text);
        }
        return answer;
    }

    @Override
    public CompletionStage<?> onText(WebSocket from, CharSequence data, boolean last) {
        partial.append(data);
        if (last) {
            messages.add(partial.toString());
            partial.setLength(0);
        }
        from.request(1);
        return null;
    }

    @Override
    public void onError(WebSocket from, Throwable problem) {
        messages.add("error: " + problem);
    }

    @Override
    public void close() {
        socket.abort();
    }
}
