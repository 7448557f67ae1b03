package org.sslsweep.tomcattests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The harness's own controls: what would let the other tests pass without testing anything makes them fail. */
class BrokenSetUpTest {
    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "TOMCAT11_VIRTUAL")
    void aServerThatFallsBackToJsseFails(Kind kind) throws Exception {
        try (Server server = Server.of(kind).libraryPath("/nowhere").launch()) {
            assertEquals(2, server.process().awaitEnd());
        }
    }

    @Test
    void withoutOurLibraryTheServerRunsUnguardedAndTheTestFails() throws Exception {
        try (Server server = Server.of(Kind.TOMCAT10_NIO).jvm("-Dorg.sslsweep.library=/nowhere/libsslsweep.so").start()) {
            server.process().awaitLog(line -> line.contains("sslsweep: connectors run unguarded"));
            Body body = new Body(4096);
            try (Connection connection = Connection.open(server.port())) {
                assertEquals(body.digest(), connection.put("/put", body));
            }
            assertThrows(IOException.class, server::ledger);
            assertEquals(2, server.process().awaitEnd());
        }
    }

    /** The genuine tcnative 1.2.35 has its own: so what the JVM says is found, and it is not held against us. */
    @Test
    void whatTheJvmSaysAboutJniIsFound() throws Exception {
        try (Server server = Server.of(Kind.TOMCAT9_APR).start()) {
            server.end();
            List<String> all = server.process().jni().all();
            assertFalse(all.isEmpty());
            assertTrue(all.stream().allMatch(block -> block.contains("org.apache.tomcat.jni.")), all::toString);
        }
    }
}
