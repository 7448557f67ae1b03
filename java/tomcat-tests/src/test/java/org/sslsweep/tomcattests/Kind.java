package org.sslsweep.tomcattests;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** The servers under test. */
enum Kind {
    /** The server of the bug report that the project starts from. */
    TOMCAT9_APR("tomcat-server-9", "apr", "OPENSSL", "https-openssl-apr-auto", List.of()),
    TOMCAT9_NIO("tomcat-server-9", "nio", "OPENSSL", "https-openssl-nio-auto", List.of()),
    TOMCAT10_NIO("tomcat-server-10", "nio", "OPENSSL", "https-openssl-nio-auto", List.of()),
    TOMCAT10_NIO2("tomcat-server-10", "nio2", "OPENSSL", "https-openssl-nio2-auto", List.of()),
    /** On Java 25, with virtual threads. */
    TOMCAT11_VIRTUAL("tomcat-server-11", "nio", "FFM", "https-opensslffm-nio-auto", List.of("useVirtualThreads:true"));

    final String module;
    final String connector;
    final String tls;
    /** How the labels of its connector begin. */
    final String label;
    final List<String> attributes;

    Kind(String module, String connector, String tls, String label, List<String> attributes) {
        this.module = module;
        this.connector = connector;
        this.tls = tls;
        this.label = label;
        this.attributes = attributes;
    }

    /** Whether its workers are virtual threads, which have no tasks of their own in the ledger. */
    boolean isVirtual() {
        return this == TOMCAT11_VIRTUAL;
    }

    /** The program that is this server. */
    Server.Program program() throws IOException {
        List<String> jvm = isVirtual() ? List.of("--enable-native-access=ALL-UNNAMED") : List.of();
        return new Server.Program(java(), jvm, classPath(module), connector, tls, attributes);
    }

    private String java() {
        return isVirtual() ? Folders.java25() : Folders.java();
    }

    static String classPath(String module) throws IOException {
        Path target = Folders.JAVA.resolve(module).resolve("target");
        return target.resolve("classes") + ":" + Files.readString(target.resolve("classpath.txt")).strip();
    }
}
