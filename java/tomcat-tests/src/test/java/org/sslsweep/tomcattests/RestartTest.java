package org.sslsweep.tomcattests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Set;
import java.util.stream.Collectors;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Tomcat is started and stopped 200 times in one JVM: nothing of ours stays behind. */
class RestartTest {
    private static final int TIMES = 200;
    /** Until then classes are still being loaded, and threads started, for the first time. */
    private static final int WARM = 40;
    private static final Body BODY = new Body(4096);

    @ParameterizedTest
    @EnumSource
    void nothingGrows(Kind kind) throws Exception {
        try (Server server = Server.of(kind).start()) {
            JsonNode warm = null;
            Set<String> warmLabels = Set.of();
            for (int i = 1; i <= TIMES; i++) {
                try (Connection connection = Connection.open(server.port())) {
                    assertEquals(BODY.digest() + " clean", connection.put("/leave?before=1&after=1", BODY));
                }
                server.restart();
                if (i == WARM) {
                    warm = server.order("figures");
                    warmLabels = labels(server);
                }
            }
            JsonNode end = server.order("figures");
            String figures = warm + " after " + WARM + ", " + end + " after " + TIMES;
            // The JVM itself starts and ends some threads, and loads some classes, when it pleases.
            assertTrue(end.get("threads").intValue() <= warm.get("threads").intValue() + 5, figures);
            assertTrue(end.get("classes").intValue() <= warm.get("classes").intValue() + (TIMES - WARM) / 4, figures);
            assertEquals(warmLabels, labels(server));
            Ledger ledger = server.ledger();
            assertEquals(2L * TIMES, Ledger.count(ledger.leftByServlets(), this::isTheServlets), ledger::toString);
            server.end();
        }
    }

    /** Tomcat leaves the same error when it reads the certificate, each time it starts. */
    private boolean isTheServlets(Ledger.Entry entry) {
        return !entry.label().endsWith("/set-up");
    }

    private static Set<String> labels(Server server) throws Exception {
        return server.ledger().labels.stream().map(Ledger.Label::name).collect(Collectors.toSet());
    }
}
