package org.sslsweep.tomcattests;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** The listener on each kind of server, with genuine OpenSSL. */
class TomcatTest {
    private static final Body SMALL = new Body(4096);
    private static final Body LARGE = new Body(100_000_000);

    @ParameterizedTest
    @EnumSource
    void bodiesArriveWhole(Kind kind) throws Exception {
        try (Server server = Server.of(kind).start()) {
            try (Connection connection = Connection.open(server.port())) {
                for (int i = 0; i < 20; i++) {
                    assertEquals(SMALL.digest(), connection.put("/put", SMALL));
                }
                assertEquals(LARGE.digest(), connection.put("/put", LARGE));
                assertEquals(SMALL.digest(), connection.put("/put", SMALL));
            }
            try (Connection connection = Connection.open(server.port(), "TLSv1.2")) {
                assertEquals(SMALL.digest(), connection.put("/put", SMALL));
            }
            server.end();
        }
    }

    @ParameterizedTest
    @EnumSource
    void saysOnceAtStartWhatItGuards(Kind kind) throws Exception {
        try (Server server = Server.of(kind).start()) {
            server.end();
            List<String> lines = server.process().reports();
            assertEquals(1, lines.size(), lines::toString);
            assertTrue(lines.get(0).contains(" guards " + kind.label + " "), lines::toString);
            assertTrue(lines.get(0).contains("libcrypto.so.3"), lines::toString);
        }
    }

    /** The pool's own counter is the independent one. Virtual threads have no pool and no such tasks. */
    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "TOMCAT11_VIRTUAL")
    void everyTaskOfThePoolIsSwept(Kind kind) throws Exception {
        try (Server server = Server.of(kind).start()) {
            for (int i = 0; i < 20; i++) {
                try (Connection connection = Connection.open(server.port())) {
                    connection.put("/put", SMALL);
                    connection.put("/leave?after=1", SMALL);
                }
                garbage(server.port(), i);
            }
            // Connections that stay open: nothing goes on while the two are read.
            try (Connection first = Connection.open(server.port()); Connection second = Connection.open(server.port())) {
                first.put("/put", new Body(3_000_000));
                second.put("/put", SMALL);
                long completed;
                long swept;
                // Clients that have left are noticed a little later: two equal counts around the ledger's.
                do {
                    completed = server.completedTasks();
                    swept = server.ledger().workerTasks(kind.label);
                } while (completed != server.completedTasks());
                assertTrue(completed > 60, () -> "the pool has hardly worked");
                assertEquals(completed, swept);
            }
            server.end();
        }
    }

    @ParameterizedTest
    @EnumSource
    void eachErrorOfAServletIsCountedOnce(Kind kind) throws Exception {
        try (Server server = Server.of(kind).start()) {
            server.order("reset");
            int requests = 0;
            for (String protocol : List.of("TLSv1.2", "TLSv1.3")) {
                for (int i = 0; i < 10; i++) {
                    try (Connection connection = Connection.open(server.port(), protocol)) {
                        // The second body takes several reads.
                        for (Body body : List.of(SMALL, new Body(300_000))) {
                            assertEquals(body.digest() + " clean", connection.put("/leave?before=2&during=1&after=2", body));
                            requests++;
                        }
                    }
                }
            }
            if (!kind.isVirtual()) {
                server.completedTasks();
            }
            Ledger ledger = server.ledger();
            List<Ledger.Entry> left = ledger.leftByServlets();
            assertEquals(requests * 5L, Ledger.count(left, entry -> true), ledger::toString);
            assertFalse(left.stream().anyMatch(Ledger.Entry::atLeast), ledger::toString);
            assertNamesTheConnector(kind, left, ledger);
            server.end();
        }
    }

    private static void assertNamesTheConnector(Kind kind, List<Ledger.Entry> left, Ledger ledger) {
        if (kind.isVirtual()) {
            // Nobody is blamed: between the servlet and the operation that found them the thread may have moved.
            assertTrue(left.stream().allMatch(e -> e.label().startsWith(kind.label + "/tls-")), ledger::toString);
            assertEquals(0, left.stream().mapToLong(Ledger.Entry::leftovers).sum(), ledger::toString);
            return;
        }
        assertEquals(0, left.stream().mapToLong(Ledger.Entry::arrivals).sum(), ledger::toString);
        for (Ledger.Entry entry : left) {
            assertTrue(Ledger.isWorkers(kind.label, entry.label()), ledger::toString);
            // As much of a worker's name as the system keeps.
            assertTrue(entry.thread().startsWith("https-openssl-"), ledger::toString);
        }
        // Not the phase for tasks that do not tell.
        String read = kind == Kind.TOMCAT10_NIO2 ? "/io" : "/read";
        assertTrue(left.stream().anyMatch(entry -> entry.label().equals(kind.label + read)), ledger::toString);
    }

    @ParameterizedTest
    @EnumSource
    void aHealthyConnectionSurvivesItsNeighbours(Kind kind) throws Exception {
        Server.Builder builder = Server.of(kind);
        if (!kind.isVirtual()) {
            // One worker for all: what anybody leaves meets everybody.
            builder.attribute("maxThreads:1").attribute("minSpareThreads:1");
        }
        try (Server server = builder.start();
                Connection healthy = Connection.open(server.port());
                Connection neighbour = Connection.open(server.port())) {
            assertEquals(SMALL.digest(), healthy.put("/put", SMALL));
            for (int i = 0; i < 12; i++) {
                garbage(server.port(), i);
                neighbour.put("/leave?before=1&after=15", SMALL);
                assertEquals(SMALL.digest() + " clean", healthy.put("/leave", SMALL));
            }
            server.end();
        }
    }

    @ParameterizedTest
    @EnumSource
    void applicationThreadsWriteAndLeaveNothing(Kind kind) throws Exception {
        try (Server server = Server.of(kind).start()) {
            server.order("reset");
            try (Connection connection = Connection.open(server.port())) {
                byte[] answer = connection.get("/async?chunks=50&leave=2");
                byte[] expected = new byte[50 * 4096];
                for (int i = 0; i < 50; i++) {
                    Arrays.fill(expected, i * 4096, (i + 1) * 4096, (byte) i);
                }
                assertArrayEquals(expected, answer);
                // On the same connection, and maybe on the same worker.
                assertEquals(SMALL.digest() + " clean", connection.put("/leave", SMALL));
            }
            // Two connections: on one that workers and another thread answer by turns, Tomcat's NIO connectors stall now
            // and then, with and without the listener (seen on 9.0.70 and 10.1.45).
            try (Echo worker = Echo.open(server.port()); Echo application = Echo.open(server.port())) {
                for (int i = 0; i < 25; i++) {
                    assertEquals("message " + i, worker.exchange("message " + i));
                    assertEquals("answer " + i, application.exchange("application 3 answer " + i));
                }
            }
            // WebSocket on APR writes past all that is ours; its natives clear what is there.
            int left = 50 * 2 + (kind == Kind.TOMCAT9_APR ? 0 : 25 * 3);
            String label = kind == Kind.TOMCAT9_APR ? "servlet" : kind.label + "/tls-write";
            Ledger ledger = server.ledger();
            List<Ledger.Entry> found = ledger.leftByServlets();
            assertEquals(left, Ledger.count(found, entry -> true), ledger::toString);
            assertTrue(found.stream().allMatch(entry -> entry.label().equals(label)), ledger::toString);
            server.end();
        }
    }

    @ParameterizedTest
    @EnumSource
    void stopsWithLiveConnections(Kind kind) throws Exception {
        // A worker of APR that waits for a body goes on waiting when Tomcat stops, as long as it would have without.
        try (Server server = Server.of(kind).attribute("disableUploadTimeout:false")
                .attribute("connectionUploadTimeout:2000").start()) {
            List<Connection> live = new ArrayList<>();
            try (Echo echo = Echo.open(server.port())) {
                for (int i = 0; i < 8; i++) {
                    Connection connection = Connection.open(server.port());
                    live.add(connection);
                    connection.put("/leave?after=1", SMALL);
                }
                // In the middle of requests: bodies that do not come.
                live.get(6).startPut("/put", 100);
                live.get(7).startPut("/put", 100);
                assertEquals("x", echo.exchange("x"));
                server.order("stop");
                for (Connection connection : live.subList(0, 6)) {
                    connection.awaitClose();
                }
            } finally {
                for (Connection connection : live) {
                    connection.close();
                }
            }
            server.end();
        }
    }

    /** The control: without the listener nothing is swept, and the log does not speak of us. */
    @ParameterizedTest
    @EnumSource
    void withoutTheListenerNothingIsSwept(Kind kind) throws Exception {
        try (Server server = Server.of(kind).withoutListener().start()) {
            try (Connection connection = Connection.open(server.port())) {
                for (int i = 0; i < 10; i++) {
                    connection.put("/leave?before=2&after=3", SMALL);
                }
            }
            Ledger ledger = server.ledger();
            assertEquals(0, ledger.labels.stream().mapToLong(Ledger.Label::tasks).sum(), ledger::toString);
            assertEquals(List.of(), ledger.leftByServlets());
            server.end();
            assertEquals(List.of(), server.process().reports());
        }
    }

    /** What a client may send to a TLS port that is no TLS, or the beginning of it. Waits until the server has closed. */
    static void garbage(int port, int which) throws IOException {
        byte[] text = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".getBytes(StandardCharsets.US_ASCII);
        byte[] random = new byte[512];
        new Random(which).nextBytes(random);
        // The head of a record with a ClientHello of 256 bytes, which are zeros.
        byte[] hello = Arrays.copyOf(new byte[] {22, 3, 1, 1, 0}, 5 + 256);
        byte[] alert = {21, 3, 3, 0, 2, 2, 40};
        byte[] bytes = List.of(text, random, hello, alert).get(which % 4);
        try (Socket socket = new Socket("127.0.0.1", port)) {
            socket.getOutputStream().write(bytes);
            socket.shutdownOutput();
            while (socket.getInputStream().read() >= 0) {
                // An alert, before it closes.
            }
        } catch (IOException reset) {
            // That is a way to close, too.
        }
    }
}
