package org.sslsweep.tomcattests;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;

/** The unmodified Tomcats that load our libtcnative-2.so. There is no jar of ours on their class path. */
enum DropInKind {
    TOMCAT9_NIO("tomcat-server-9", "nio", false),
    TOMCAT9_NIO2("tomcat-server-9", "nio2", false),
    TOMCAT9_CURRENT_NIO("tomcat-server-9-current", "nio", false),
    TOMCAT9_CURRENT_NIO2("tomcat-server-9-current", "nio2", false),
    TOMCAT10_NIO("tomcat-server-10", "nio", false),
    TOMCAT10_NIO2("tomcat-server-10", "nio2", false),
    TOMCAT10_CURRENT_NIO("tomcat-server-10-current", "nio", false),
    TOMCAT10_CURRENT_NIO2_JAVA25("tomcat-server-10-current", "nio2", true),
    TOMCAT11_NIO("tomcat-server-11", "nio", false),
    TOMCAT11_NIO2("tomcat-server-11", "nio2", false),
    TOMCAT11_NIO_JAVA25("tomcat-server-11", "nio", true),
    TOMCAT11_NIO2_JAVA25("tomcat-server-11", "nio2", true);

    /** One jar has what {@code snapshot} and the listener need; the other one the tests' own leaver of errors. */
    private static final String JAR = "/java/sslsweep/target/";

    private final String module;
    private final String connector;
    private final boolean java25;

    DropInKind(String module, String connector, boolean java25) {
        this.module = module;
        this.connector = connector;
        this.java25 = java25;
    }

    boolean isNio2() {
        return connector.equals("nio2");
    }

    /** Whether Tomcat asks a client of TLS 1.3 for its certificate after the handshake: the old ones wait for ever. */
    boolean asksAfterTheHandshake() {
        return !module.equals("tomcat-server-9") && !module.equals("tomcat-server-10");
    }

    /** The program that is this server. */
    Server.Program program() throws IOException {
        String classPath = Arrays.stream(Kind.classPath(module).split(":")).filter(entry -> !entry.contains(JAR))
                .collect(Collectors.joining(":"));
        // Else the JVM warns of each library that is loaded.
        List<String> jvm = java25 ? List.of("--enable-native-access=ALL-UNNAMED") : List.of();
        return new Server.Program(
                java25 ? Folders.java25() : Folders.java(), jvm, classPath, connector, "OPENSSL", List.of());
    }
}
