package org.sslsweep.tomcat.panama;

import org.sslsweep.tomcat.SweepingOpenSSLImplementation;

/**
 * Tomcat's TLS by OpenSSL through Java's foreign functions (Java 22 and later), with each operation guarded.
 *
 * <p>Tomcat takes the name that a connector has in logs and JMX from the end of this class's name.
 */
public class OpenSSLImplementation extends SweepingOpenSSLImplementation {
    /**
     * For Tomcat, by the class's name.
     *
     * @throws ClassNotFoundException when Tomcat's implementation is not there
     */
    public OpenSSLImplementation() throws ClassNotFoundException {
        super("org.apache.tomcat.util.net.openssl.panama.OpenSSLImplementation");
    }
}
