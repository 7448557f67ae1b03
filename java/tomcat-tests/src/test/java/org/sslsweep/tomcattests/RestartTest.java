package org.sslsweep.tomcattests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tomcat is started and stopped 200 times in one JVM: nothing of ours stays behind. */
class RestartTest {
    private static final int TIMES = 200;
    /** Until then classes are still being loaded, and threads started, for the first time. */
    private static final int WARM = 40;
    /** The JVM itself starts and ends threads, and loads classes, when it pleases. */
    private static final int THREADS = 5;
    private static final int CLASSES = (TIMES - WARM) / 4;
    private static final Body BODY = new Body(4096);

    /** What was there more after all restarts than after the first ones. */
    private record Growth(int threads, int classes) {}

    @ParameterizedTest
    @EnumSource
    void nothingGrows(Kind kind) throws Exception {
        Growth with;
        try (Server server = Server.of(kind).start()) {
            serve(server, WARM);
            Set<String> warm = labels(server);
            with = serve(server, TIMES - WARM);
            assertEquals(warm, labels(server));
            Ledger ledger = server.ledger();
            assertEquals(2L * TIMES, Ledger.count(ledger.leftByServlets(), this::isAServlets), ledger::toString);
            server.end();
        }
        // Tomcat's FFM implementation makes classes at each start.
        Growth without = kind.isVirtual() ? withoutListener(kind) : new Growth(0, 0);
        String text = with + ", without the listener " + without;
        assertTrue(with.threads() <= without.threads() + THREADS, text);
        assertTrue(with.classes() <= without.classes() + CLASSES, text);
    }

    private static Growth withoutListener(Kind kind) throws Exception {
        try (Server server = Server.of(kind).withoutListener().start()) {
            serve(server, WARM);
            Growth growth = serve(server, TIMES - WARM);
            server.end();
            return growth;
        }
    }

    /** Serves a request and restarts, so many times. */
    private static Growth serve(Server server, int times) throws IOException, InterruptedException {
        JsonNode before = server.order("figures");
        for (int i = 0; i < times; i++) {
            try (Connection connection = Connection.open(server.port())) {
                assertTrue(connection.put("/leave?before=1&after=1", BODY).startsWith(BODY.digest()));
            }
            server.restart();
        }
        JsonNode after = server.order("figures");
        return new Growth(after.get("threads").intValue() - before.get("threads").intValue(),
                after.get("classes").intValue() - before.get("classes").intValue());
    }

    /** Tomcat leaves the same error when it reads the certificate, each time it starts. */
    private boolean isAServlets(Ledger.Entry entry) {
        return !entry.label().endsWith("/set-up");
    }

    private static Set<String> labels(Server server) throws IOException, InterruptedException {
        return server.ledger().labels.stream().map(Ledger.Label::name).collect(Collectors.toSet());
    }
}
