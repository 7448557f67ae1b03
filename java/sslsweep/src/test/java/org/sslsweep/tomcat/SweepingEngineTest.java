package org.sslsweep.tomcat;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.function.BiFunction;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLEngineResult.Status;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSession;
import org.apache.tomcat.util.net.SSLUtil;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class SweepingEngineTest {
    private final RecordingEngine recorder = new RecordingEngine();
    private final SweepingEngine engine = new SweepingEngine(recorder, new ConnectorLabels("engine"));

    /** What the running JDK's SSLEngine lets a subclass answer. */
    static List<Method> methods() {
        return Stream.of(SSLEngine.class.getDeclaredMethods())
                .filter(method -> (method.getModifiers() & (Modifier.PUBLIC | Modifier.PROTECTED)) != 0)
                .filter(method -> !Modifier.isStatic(method.getModifiers()) && !Modifier.isFinal(method.getModifiers()))
                .filter(method -> !method.isSynthetic())
                .collect(Collectors.toList());
    }

    @Test
    void thereAreMethods() {
        assertTrue(methods().size() >= 37, methods().toString());
    }

    /** Fails when a later JDK adds a method that nobody here has thought of. */
    @ParameterizedTest
    @MethodSource("methods")
    void handsEachCallOn(Method method) throws Exception {
        assertDoesNotThrow(() -> SweepingEngine.class.getDeclaredMethod(method.getName(), method.getParameterTypes()),
                "SweepingEngine does not hand it on");
        assertDoesNotThrow(() -> RecordingEngine.class.getDeclaredMethod(method.getName(), method.getParameterTypes()),
                "RecordingEngine does not record it");
        Object[] arguments = Stream.of(method.getParameterTypes()).map(SweepingEngineTest::value).toArray();
        recorder.answer = method.getReturnType() == void.class ? null : value(method.getReturnType());

        Object answer = method.invoke(engine, arguments);

        assertEquals(RecordingEngine.signature(method), recorder.called);
        assertArrayEquals(arguments, recorder.arguments);
        if (method.getReturnType().isPrimitive()) {
            assertEquals(recorder.answer, answer);
        } else {
            assertSame(recorder.answer, answer);
        }
    }

    @ParameterizedTest
    @MethodSource("methods")
    void handsOnWhatIsThrown(Method method) {
        recorder.problem = new SSLException("the engine's");
        Object[] arguments = Stream.of(method.getParameterTypes()).map(SweepingEngineTest::value).toArray();
        InvocationTargetException thrown =
                assertThrows(InvocationTargetException.class, () -> method.invoke(engine, arguments));
        assertSame(recorder.problem, thrown.getCause());
    }

    private static Object value(Class<?> type) {
        if (type == boolean.class) {
            return true;
        } else if (type == int.class) {
            return 7;
        } else if (type == String.class) {
            return new String("text");
        } else if (type == String[].class) {
            return new String[] {"one"};
        } else if (type == ByteBuffer.class) {
            return ByteBuffer.allocate(1);
        } else if (type == ByteBuffer[].class) {
            return new ByteBuffer[] {ByteBuffer.allocate(1)};
        } else if (type == SSLEngineResult.class) {
            return result(HandshakeStatus.NEED_UNWRAP);
        } else if (type == HandshakeStatus.class) {
            return HandshakeStatus.NEED_TASK;
        } else if (type == SSLParameters.class) {
            return new SSLParameters();
        } else if (type == Runnable.class) {
            return (Runnable) () -> { };
        } else if (type == BiFunction.class) {
            return (BiFunction<SSLEngine, List<String>, String>) (engine, protocols) -> null;
        } else if (type == SSLSession.class) {
            try {
                return SSLContext.getDefault().createSSLEngine().getSession();
            } catch (java.security.NoSuchAlgorithmException absent) {
                throw new AssertionError(absent);
            }
        }
        throw new AssertionError("a new type in SSLEngine: " + type);
    }

    private static SSLEngineResult result(HandshakeStatus status) {
        return new SSLEngineResult(Status.OK, status, 0, 0);
    }

    @Test
    void tellsTheProtocolThatTomcatAsksFor() {
        class Negotiated extends RecordingEngine implements SSLUtil.ProtocolInfo {
            @Override
            public String getNegotiatedProtocol() {
                return "h2";
            }
        }

        assertEquals("h2", new SweepingEngine(new Negotiated(), new ConnectorLabels("engine")).getNegotiatedProtocol());
        recorder.answer = "http/1.1";
        assertEquals("http/1.1", engine.getNegotiatedProtocol());
    }

    @Test
    void labelsEachOperationByItsPhase() throws Exception {
        SweepingEngine labelled = new SweepingEngine(recorder, new ConnectorLabels("phases"));
        ByteBuffer buffer = ByteBuffer.allocate(1);
        labelled.beginHandshake();
        recorder.answer = result(HandshakeStatus.NEED_WRAP);
        labelled.unwrap(buffer, buffer);
        recorder.answer = result(HandshakeStatus.FINISHED);
        labelled.wrap(buffer, buffer);
        assertEquals(3, Ledger.tasks("phases/tls-handshake"));

        recorder.answer = result(HandshakeStatus.NOT_HANDSHAKING);
        labelled.unwrap(buffer, buffer);
        labelled.wrap(buffer, buffer);
        labelled.wrap(buffer, buffer);
        assertEquals(1, Ledger.tasks("phases/tls-read"));
        assertEquals(2, Ledger.tasks("phases/tls-write"));

        labelled.closeOutbound();
        labelled.wrap(buffer, buffer);
        assertEquals(2, Ledger.tasks("phases/tls-close"));
        assertEquals(3, Ledger.tasks("phases/tls-handshake"));
    }
}
