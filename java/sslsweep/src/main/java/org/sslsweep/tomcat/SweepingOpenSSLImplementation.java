package org.sslsweep.tomcat;

import java.util.List;
import java.util.Map;
import javax.net.ssl.SSLSession;
import org.apache.tomcat.util.net.SSLHostConfigCertificate;
import org.apache.tomcat.util.net.SSLImplementation;
import org.apache.tomcat.util.net.SSLSupport;
import org.apache.tomcat.util.net.SSLUtil;
import org.sslsweep.ThreadHygiene;

/**
 * Tomcat's TLS by OpenSSL through tomcat-native, with each operation guarded. {@link HygieneListener} puts it in place;
 * it may also be named by a connector's attribute {@code sslImplementationName}.
 *
 * <p>Without the native library of sslsweep it does what Tomcat's own does.
 */
public class SweepingOpenSSLImplementation extends SSLImplementation {
    /** What it guards. */
    static final String DELEGATE = "org.apache.tomcat.util.net.openssl.OpenSSLImplementation";

    private final SSLImplementation implementation;
    private final ConnectorLabels labels;

    /**
     * For Tomcat, by the class's name.
     *
     * @throws ClassNotFoundException when Tomcat's implementation is not there
     */
    public SweepingOpenSSLImplementation() throws ClassNotFoundException {
        this(DELEGATE);
    }

    /** Guards the implementation of this name. */
    protected SweepingOpenSSLImplementation(String delegate) throws ClassNotFoundException {
        this(SSLImplementation.getInstance(delegate), ConnectorHooks.labelsHere());
    }

    /** @param labels null without the native library */
    SweepingOpenSSLImplementation(SSLImplementation implementation, ConnectorLabels labels) {
        this.implementation = implementation;
        this.labels = labels;
    }

    @Override
    public SSLUtil getSSLUtil(SSLHostConfigCertificate certificate) {
        SSLUtil util = implementation.getSSLUtil(certificate);
        return labels == null || !ThreadHygiene.isAvailable() ? util : new SweepingUtil(util, labels);
    }

    @Override
    public SSLSupport getSSLSupport(SSLSession session, Map<String, List<String>> additional) {
        return implementation.getSSLSupport(session, additional);
    }

    /** Tomcat 9 alone declares it; nobody calls it there. */
    @Override
    @Deprecated
    public SSLSupport getSSLSupport(SSLSession session) {
        return implementation.getSSLSupport(session, null);
    }

    /** Tomcat 9 alone asks; OpenSSL always has ALPN. */
    @Override
    public boolean isAlpnSupported() {
        return true;
    }
}
