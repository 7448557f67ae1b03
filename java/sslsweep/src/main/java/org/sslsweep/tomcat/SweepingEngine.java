package org.sslsweep.tomcat;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.function.BiFunction;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSession;
import org.apache.tomcat.util.net.SSLUtil;
import org.sslsweep.TaskHooks;

/**
 * An engine of Tomcat's with each operation that goes into OpenSSL guarded: on whatever thread, worker or not.
 * Allocates nothing and changes nothing of what the engine answers.
 */
final class SweepingEngine extends SSLEngine implements SSLUtil.ProtocolInfo {
    private final SSLEngine engine;
    private final ConnectorLabels labels;
    // Plain fields: they choose labels only.
    private boolean established;
    private boolean closing;
    /** Labels of the state, at hand: each operation takes one, from a cold cache. */
    private int reading;
    private int writing;

    SweepingEngine(SSLEngine engine, ConnectorLabels labels) {
        this.engine = engine;
        this.labels = labels;
        chooseLabels();
    }

    /** Where Tomcat asks; its own engines do not answer {@link #getApplicationProtocol}. */
    @Override
    public String getNegotiatedProtocol() {
        return engine instanceof SSLUtil.ProtocolInfo ? ((SSLUtil.ProtocolInfo) engine).getNegotiatedProtocol()
                : engine.getApplicationProtocol();
    }

    @Override
    public SSLEngineResult wrap(ByteBuffer source, ByteBuffer target) throws SSLException {
        int label = writing;
        long token = TaskHooks.enterOperation(label);
        try {
            return noted(engine.wrap(source, target));
        } finally {
            TaskHooks.exitOperation(label, token);
        }
    }

    @Override
    public SSLEngineResult wrap(ByteBuffer[] sources, ByteBuffer target) throws SSLException {
        int label = writing;
        long token = TaskHooks.enterOperation(label);
        try {
            return noted(engine.wrap(sources, target));
        } finally {
            TaskHooks.exitOperation(label, token);
        }
    }

    @Override
    public SSLEngineResult wrap(ByteBuffer[] sources, int first, int count, ByteBuffer target) throws SSLException {
        int label = writing;
        long token = TaskHooks.enterOperation(label);
        try {
            return noted(engine.wrap(sources, first, count, target));
        } finally {
            TaskHooks.exitOperation(label, token);
        }
    }

    @Override
    public SSLEngineResult unwrap(ByteBuffer source, ByteBuffer target) throws SSLException {
        int label = reading;
        long token = TaskHooks.enterOperation(label);
        try {
            return noted(engine.unwrap(source, target));
        } finally {
            TaskHooks.exitOperation(label, token);
        }
    }

    @Override
    public SSLEngineResult unwrap(ByteBuffer source, ByteBuffer[] targets) throws SSLException {
        int label = reading;
        long token = TaskHooks.enterOperation(label);
        try {
            return noted(engine.unwrap(source, targets));
        } finally {
            TaskHooks.exitOperation(label, token);
        }
    }

    @Override
    public SSLEngineResult unwrap(ByteBuffer source, ByteBuffer[] targets, int first, int count) throws SSLException {
        int label = reading;
        long token = TaskHooks.enterOperation(label);
        try {
            return noted(engine.unwrap(source, targets, first, count));
        } finally {
            TaskHooks.exitOperation(label, token);
        }
    }

    @Override
    public void beginHandshake() throws SSLException {
        established = false;
        chooseLabels();
        int label = labels.tlsHandshake;
        long token = TaskHooks.enterOperation(label);
        try {
            engine.beginHandshake();
        } finally {
            TaskHooks.exitOperation(label, token);
        }
    }

    @Override
    public void closeInbound() throws SSLException {
        closing = true;
        chooseLabels();
        int label = labels.tlsClose;
        long token = TaskHooks.enterOperation(label);
        try {
            engine.closeInbound();
        } finally {
            TaskHooks.exitOperation(label, token);
        }
    }

    @Override
    public void closeOutbound() {
        closing = true;
        chooseLabels();
        int label = labels.tlsClose;
        long token = TaskHooks.enterOperation(label);
        try {
            engine.closeOutbound();
        } finally {
            TaskHooks.exitOperation(label, token);
        }
    }

    @Override
    public void setEnabledCipherSuites(String[] suites) {
        int label = labels.tlsHandshake;
        long token = TaskHooks.enterOperation(label);
        try {
            engine.setEnabledCipherSuites(suites);
        } finally {
            TaskHooks.exitOperation(label, token);
        }
    }

    @Override
    public void setEnabledProtocols(String[] protocols) {
        int label = labels.tlsHandshake;
        long token = TaskHooks.enterOperation(label);
        try {
            engine.setEnabledProtocols(protocols);
        } finally {
            TaskHooks.exitOperation(label, token);
        }
    }

    @Override
    public void setSSLParameters(SSLParameters parameters) {
        int label = labels.tlsHandshake;
        long token = TaskHooks.enterOperation(label);
        try {
            engine.setSSLParameters(parameters);
        } finally {
            TaskHooks.exitOperation(label, token);
        }
    }

    @Override
    public void setNeedClientAuth(boolean need) {
        int label = labels.tlsHandshake;
        long token = TaskHooks.enterOperation(label);
        try {
            engine.setNeedClientAuth(need);
        } finally {
            TaskHooks.exitOperation(label, token);
        }
    }

    @Override
    public void setWantClientAuth(boolean want) {
        int label = labels.tlsHandshake;
        long token = TaskHooks.enterOperation(label);
        try {
            engine.setWantClientAuth(want);
        } finally {
            TaskHooks.exitOperation(label, token);
        }
    }

    private void chooseLabels() {
        reading = closing ? labels.tlsClose : established ? labels.tlsRead : labels.tlsHandshake;
        writing = closing ? labels.tlsClose : established ? labels.tlsWrite : labels.tlsHandshake;
    }

    private SSLEngineResult noted(SSLEngineResult result) {
        if (!established) {
            HandshakeStatus status = result.getHandshakeStatus();
            established = status == HandshakeStatus.FINISHED || status == HandshakeStatus.NOT_HANDSHAKING;
            chooseLabels();
        }
        return result;
    }

    @Override
    public String getPeerHost() {
        return engine.getPeerHost();
    }

    @Override
    public int getPeerPort() {
        return engine.getPeerPort();
    }

    @Override
    public Runnable getDelegatedTask() {
        return engine.getDelegatedTask();
    }

    @Override
    public boolean isInboundDone() {
        return engine.isInboundDone();
    }

    @Override
    public boolean isOutboundDone() {
        return engine.isOutboundDone();
    }

    @Override
    public String[] getSupportedCipherSuites() {
        return engine.getSupportedCipherSuites();
    }

    @Override
    public String[] getEnabledCipherSuites() {
        return engine.getEnabledCipherSuites();
    }

    @Override
    public String[] getSupportedProtocols() {
        return engine.getSupportedProtocols();
    }

    @Override
    public String[] getEnabledProtocols() {
        return engine.getEnabledProtocols();
    }

    @Override
    public SSLSession getSession() {
        return engine.getSession();
    }

    @Override
    public SSLSession getHandshakeSession() {
        return engine.getHandshakeSession();
    }

    @Override
    public HandshakeStatus getHandshakeStatus() {
        return engine.getHandshakeStatus();
    }

    @Override
    public void setUseClientMode(boolean client) {
        engine.setUseClientMode(client);
    }

    @Override
    public boolean getUseClientMode() {
        return engine.getUseClientMode();
    }

    @Override
    public boolean getNeedClientAuth() {
        return engine.getNeedClientAuth();
    }

    @Override
    public boolean getWantClientAuth() {
        return engine.getWantClientAuth();
    }

    @Override
    public void setEnableSessionCreation(boolean enable) {
        engine.setEnableSessionCreation(enable);
    }

    @Override
    public boolean getEnableSessionCreation() {
        return engine.getEnableSessionCreation();
    }

    @Override
    public SSLParameters getSSLParameters() {
        return engine.getSSLParameters();
    }

    @Override
    public String getApplicationProtocol() {
        return engine.getApplicationProtocol();
    }

    @Override
    public String getHandshakeApplicationProtocol() {
        return engine.getHandshakeApplicationProtocol();
    }

    @Override
    public void setHandshakeApplicationProtocolSelector(BiFunction<SSLEngine, List<String>, String> selector) {
        engine.setHandshakeApplicationProtocolSelector(selector);
    }

    @Override
    public BiFunction<SSLEngine, List<String>, String> getHandshakeApplicationProtocolSelector() {
        return engine.getHandshakeApplicationProtocolSelector();
    }

    @Override
    public String toString() {
        return engine.toString();
    }
}
