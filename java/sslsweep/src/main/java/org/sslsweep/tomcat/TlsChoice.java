package org.sslsweep.tomcat;

import org.apache.catalina.connector.Connector;

/** Which TLS implementation a connector gets: named by its configuration, or chosen by Tomcat. */
final class TlsChoice {
    /** Through tomcat-native. */
    static final String OPENSSL = SweepingOpenSSLImplementation.DELEGATE;
    /** Through Java's foreign functions. */
    static final String OPENSSL_FFM = "org.apache.tomcat.util.net.openssl.panama.OpenSSLImplementation";

    private static final String NAME = "sslImplementationName";
    private static final String STATUS = "org.apache.tomcat.util.net.openssl.OpenSSLStatus";
    private static final String APR_STATUS = "org.apache.catalina.core.AprStatus";

    private TlsChoice() {}

    /**
     * The name of the implementation, the guarded one where ours is named; null for JSSE. To be asked after the
     * server's listeners, such as the APR one.
     */
    static String of(Connector connector) {
        Object named = connector.getProperty(NAME);
        if (named != null) {
            return unguarded(named.toString());
        }
        if (Runtime.version().feature() >= 22 && yes(STATUS, "getUseOpenSSL") && yes(STATUS, "isAvailable")) {
            return OPENSSL_FFM;
        }
        if (yes(APR_STATUS, "isAprAvailable") && yes(APR_STATUS, "getUseOpenSSL")) {
            return OPENSSL;
        }
        return null;
    }

    /** The class of ours that guards this implementation; null where there is none. */
    static String guardOf(String implementation) {
        if (OPENSSL.equals(implementation)) {
            return SweepingOpenSSLImplementation.class.getName();
        }
        return OPENSSL_FFM.equals(implementation) ? "org.sslsweep.tomcat.panama.OpenSSLImplementation" : null;
    }

    /** What this implementation guards, where it is one of ours. */
    private static String unguarded(String implementation) {
        if (guardOf(OPENSSL).equals(implementation)) {
            return OPENSSL;
        }
        return guardOf(OPENSSL_FFM).equals(implementation) ? OPENSSL_FFM : implementation;
    }

    static void set(Connector connector, String implementation) {
        connector.setProperty(NAME, implementation);
    }

    private static boolean yes(String type, String method) {
        return Boolean.TRUE.equals(Reflection.callStatic(type, method));
    }
}
