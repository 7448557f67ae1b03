package org.sslsweep.tomcat;

import java.security.KeyManagementException;
import java.security.SecureRandom;
import java.security.cert.X509Certificate;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLServerSocketFactory;
import javax.net.ssl.SSLSessionContext;
import javax.net.ssl.TrustManager;
import org.apache.tomcat.util.net.SSLContext;
import org.sslsweep.TaskHooks;

/** A context of Tomcat's that makes {@link SweepingEngine}s. */
final class SweepingContext implements SSLContext {
    private final SSLContext context;
    private final ConnectorLabels labels;

    SweepingContext(SSLContext context, ConnectorLabels labels) {
        this.context = context;
        this.labels = labels;
    }

    @Override
    public SSLEngine createSSLEngine() {
        long token = TaskHooks.enterOperation(labels.tlsHandshake);
        try {
            return new SweepingEngine(context.createSSLEngine(), labels);
        } finally {
            TaskHooks.exitOperation(labels.tlsHandshake, token);
        }
    }

    @Override
    public void init(KeyManager[] keys, TrustManager[] trust, SecureRandom random) throws KeyManagementException {
        context.init(keys, trust, random);
    }

    @Override
    public void destroy() {
        context.destroy();
    }

    @Override
    public SSLSessionContext getServerSessionContext() {
        return context.getServerSessionContext();
    }

    @Override
    public SSLServerSocketFactory getServerSocketFactory() {
        return context.getServerSocketFactory();
    }

    @Override
    public SSLParameters getSupportedSSLParameters() {
        return context.getSupportedSSLParameters();
    }

    @Override
    public X509Certificate[] getCertificateChain(String alias) {
        return context.getCertificateChain(alias);
    }

    @Override
    public X509Certificate[] getAcceptedIssuers() {
        return context.getAcceptedIssuers();
    }
}
