package org.sslsweep.tomcat;

/** What a connector's task is about. */
enum Phase {
    HANDSHAKE("/handshake"),
    READ("/read"),
    WRITE("/write"),
    CLOSE("/close"),
    /** A completion of NIO2, which does not say of what. */
    IO("/io"),
    /** Any other. */
    TASK("/task");

    final String suffix;

    Phase(String suffix) {
        this.suffix = suffix;
    }
}
