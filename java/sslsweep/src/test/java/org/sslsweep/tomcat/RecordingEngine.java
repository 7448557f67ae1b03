package org.sslsweep.tomcat;

import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import java.util.function.BiFunction;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSession;

/** Remembers the last call and answers what it is told to. */
class RecordingEngine extends SSLEngine {
    String called;
    Object[] arguments;
    Object answer;
    Throwable problem;

    private Object record(String signature, Object... given) {
        called = signature;
        arguments = given;
        if (problem != null) {
            throw RecordingEngine.<RuntimeException>same(problem);
        }
        return answer;
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> T same(Throwable problem) throws T {
        throw (T) problem;
    }

    private boolean truth(String signature, Object... given) {
        return (Boolean) record(signature, given);
    }

    /** How a method is named in {@link #called}. */
    static String signature(Method method) {
        return method.getName() + Arrays.toString(Arrays.stream(method.getParameterTypes())
                .map(Class::getSimpleName).toArray());
    }

    @Override
    public String getPeerHost() {
        return (String) record("getPeerHost[]");
    }

    @Override
    public int getPeerPort() {
        return (Integer) record("getPeerPort[]");
    }

    @Override
    public SSLEngineResult wrap(ByteBuffer source, ByteBuffer target) throws SSLException {
        return (SSLEngineResult) record("wrap[ByteBuffer, ByteBuffer]", source, target);
    }

    @Override
    public SSLEngineResult wrap(ByteBuffer[] sources, ByteBuffer target) throws SSLException {
        return (SSLEngineResult) record("wrap[ByteBuffer[], ByteBuffer]", sources, target);
    }

    @Override
    public SSLEngineResult wrap(ByteBuffer[] sources, int first, int count, ByteBuffer target) throws SSLException {
        return (SSLEngineResult) record("wrap[ByteBuffer[], int, int, ByteBuffer]", sources, first, count, target);
    }

    @Override
    public SSLEngineResult unwrap(ByteBuffer source, ByteBuffer target) throws SSLException {
        return (SSLEngineResult) record("unwrap[ByteBuffer, ByteBuffer]", source, target);
    }

    @Override
    public SSLEngineResult unwrap(ByteBuffer source, ByteBuffer[] targets) throws SSLException {
        return (SSLEngineResult) record("unwrap[ByteBuffer, ByteBuffer[]]", source, targets);
    }

    @Override
    public SSLEngineResult unwrap(ByteBuffer source, ByteBuffer[] targets, int first, int count) throws SSLException {
        return (SSLEngineResult) record("unwrap[ByteBuffer, ByteBuffer[], int, int]", source, targets, first, count);
    }

    @Override
    public Runnable getDelegatedTask() {
        return (Runnable) record("getDelegatedTask[]");
    }

    @Override
    public void closeInbound() throws SSLException {
        record("closeInbound[]");
    }

    @Override
    public boolean isInboundDone() {
        return truth("isInboundDone[]");
    }

    @Override
    public void closeOutbound() {
        record("closeOutbound[]");
    }

    @Override
    public boolean isOutboundDone() {
        return truth("isOutboundDone[]");
    }

    @Override
    public String[] getSupportedCipherSuites() {
        return (String[]) record("getSupportedCipherSuites[]");
    }

    @Override
    public String[] getEnabledCipherSuites() {
        return (String[]) record("getEnabledCipherSuites[]");
    }

    @Override
    public void setEnabledCipherSuites(String[] suites) {
        record("setEnabledCipherSuites[String[]]", (Object) suites);
    }

    @Override
    public String[] getSupportedProtocols() {
        return (String[]) record("getSupportedProtocols[]");
    }

    @Override
    public String[] getEnabledProtocols() {
        return (String[]) record("getEnabledProtocols[]");
    }

    @Override
    public void setEnabledProtocols(String[] protocols) {
        record("setEnabledProtocols[String[]]", (Object) protocols);
    }

    @Override
    public SSLSession getSession() {
        return (SSLSession) record("getSession[]");
    }

    @Override
    public SSLSession getHandshakeSession() {
        return (SSLSession) record("getHandshakeSession[]");
    }

    @Override
    public void beginHandshake() throws SSLException {
        record("beginHandshake[]");
    }

    @Override
    public SSLEngineResult.HandshakeStatus getHandshakeStatus() {
        return (SSLEngineResult.HandshakeStatus) record("getHandshakeStatus[]");
    }

    @Override
    public void setUseClientMode(boolean mode) {
        record("setUseClientMode[boolean]", mode);
    }

    @Override
    public boolean getUseClientMode() {
        return truth("getUseClientMode[]");
    }

    @Override
    public void setNeedClientAuth(boolean need) {
        record("setNeedClientAuth[boolean]", need);
    }

    @Override
    public boolean getNeedClientAuth() {
        return truth("getNeedClientAuth[]");
    }

    @Override
    public void setWantClientAuth(boolean want) {
        record("setWantClientAuth[boolean]", want);
    }

    @Override
    public boolean getWantClientAuth() {
        return truth("getWantClientAuth[]");
    }

    @Override
    public void setEnableSessionCreation(boolean flag) {
        record("setEnableSessionCreation[boolean]", flag);
    }

    @Override
    public boolean getEnableSessionCreation() {
        return truth("getEnableSessionCreation[]");
    }

    @Override
    public SSLParameters getSSLParameters() {
        return (SSLParameters) record("getSSLParameters[]");
    }

    @Override
    public void setSSLParameters(SSLParameters parameters) {
        record("setSSLParameters[SSLParameters]", parameters);
    }

    @Override
    public String getApplicationProtocol() {
        return (String) record("getApplicationProtocol[]");
    }

    @Override
    public String getHandshakeApplicationProtocol() {
        return (String) record("getHandshakeApplicationProtocol[]");
    }

    @Override
    public void setHandshakeApplicationProtocolSelector(BiFunction<SSLEngine, List<String>, String> selector) {
        record("setHandshakeApplicationProtocolSelector[BiFunction]", selector);
    }

    @Override
    @SuppressWarnings("unchecked")
    public BiFunction<SSLEngine, List<String>, String> getHandshakeApplicationProtocolSelector() {
        return (BiFunction<SSLEngine, List<String>, String>) record("getHandshakeApplicationProtocolSelector[]");
    }
}
