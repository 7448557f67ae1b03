package org.sslsweep.tomcat;

import java.util.List;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLSessionContext;
import javax.net.ssl.TrustManager;
import org.apache.tomcat.util.net.SSLContext;
import org.apache.tomcat.util.net.SSLUtil;
import org.sslsweep.TaskHooks;

/** Makes {@link SweepingContext}s. */
final class SweepingUtil implements SSLUtil {
    private final SSLUtil util;
    private final ConnectorLabels labels;

    SweepingUtil(SSLUtil util, ConnectorLabels labels) {
        this.util = util;
        this.labels = labels;
    }

    /** Loading certificates leaves errors even where it succeeds; the thread is not a worker's. */
    @Override
    public SSLContext createSSLContext(List<String> protocols) throws Exception {
        long token = TaskHooks.enterOperation(labels.setUp);
        try {
            return new SweepingContext(util.createSSLContext(protocols), labels);
        } finally {
            TaskHooks.exitOperation(labels.setUp, token);
        }
    }

    @Override
    public KeyManager[] getKeyManagers() throws Exception {
        return util.getKeyManagers();
    }

    @Override
    public TrustManager[] getTrustManagers() throws Exception {
        return util.getTrustManagers();
    }

    @Override
    public void configureSessionContext(SSLSessionContext context) {
        util.configureSessionContext(context);
    }

    @Override
    public String[] getEnabledProtocols() {
        return util.getEnabledProtocols();
    }

    @Override
    public String[] getEnabledCiphers() {
        return util.getEnabledCiphers();
    }
}
