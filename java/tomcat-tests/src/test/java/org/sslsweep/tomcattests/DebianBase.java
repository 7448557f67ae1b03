package org.sslsweep.tomcattests;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.jar.JarOutputStream;
import java.util.stream.Stream;
import java.util.zip.ZipEntry;

/** A base folder of our own for a Tomcat of Debian's packages, as an operator makes it. */
final class DebianBase implements AutoCloseable {
    private static final String WEB_XML = "<web-app><servlet><servlet-name>put</servlet-name>"
            + "<servlet-class>org.sslsweep.testserver.PutServlet</servlet-class></servlet>"
            + "<servlet><servlet-name>leave</servlet-name>"
            + "<servlet-class>org.sslsweep.testserver.LeaveServlet</servlet-class></servlet>"
            + "<servlet-mapping><servlet-name>put</servlet-name><url-pattern>/put</url-pattern></servlet-mapping>"
            + "<servlet-mapping><servlet-name>leave</servlet-name><url-pattern>/leave</url-pattern></servlet-mapping>"
            + "</web-app>";

    final Path folder;
    /** Where libsslsweep.so was copied to. */
    final Path library;
    private final String module;

    private DebianBase(Path folder, String module) {
        this.folder = folder;
        this.module = module;
        library = folder.resolve("native/libsslsweep.so");
    }

    /**
     * Makes one with an application and a certificate.
     *
     * @param module the test server whose servlets this Tomcat takes
     * @param serverXml what conf/server.xml says
     */
    static DebianBase make(String module, String serverXml) throws IOException {
        DebianBase base = new DebianBase(Files.createTempDirectory("sslsweep-debian"), module);
        for (String name : List.of("conf", "lib", "logs", "native", "temp", "work",
                "webapps/ROOT/WEB-INF/classes/org/sslsweep/testserver")) {
            Files.createDirectories(base.folder.resolve(name));
        }
        Certificate.get().write(base.folder.resolve("conf"));
        Files.writeString(base.folder.resolve("conf/server.xml"), serverXml);
        Path application = base.folder.resolve("webapps/ROOT/WEB-INF");
        Files.writeString(application.resolve("web.xml"), WEB_XML);
        for (String name : List.of("PutServlet.class", "LeaveServlet.class")) {
            String path = "org/sslsweep/testserver/" + name;
            Files.copy(Folders.JAVA.resolve(module).resolve("target/classes").resolve(path),
                    application.resolve("classes").resolve(path));
        }
        base.copyJar("leaver");
        return base;
    }

    /** The two files of the installation. */
    void install() throws IOException {
        copyJar("sslsweep");
        Files.copy(Folders.NATIVE.resolve("libsslsweep.so"), library);
    }

    /** A home folder with these jars, as the package of a Tomcat would have made it: bin and lib. */
    Path home(List<Path> jars) throws IOException {
        Path home = folder.resolve("home");
        Path bin = Files.createDirectories(home.resolve("bin"));
        Path lib = Files.createDirectories(home.resolve("lib"));
        for (Path jar : jars) {
            boolean juli = jar.getFileName().toString().contains("-juli-");
            Files.createSymbolicLink(juli ? bin.resolve("tomcat-juli.jar") : lib.resolve(jar.getFileName()), jar);
        }
        bootstrapJar(bin.resolve("bootstrap.jar"), jars);
        return home;
    }

    /** The classes that a Tomcat of Debian's has in its bootstrap.jar: all others come from lib, by a loader of their own. */
    private static void bootstrapJar(Path target, List<Path> jars) throws IOException {
        Set<String> names = new HashSet<>();
        try (JarFile model = new JarFile("/usr/share/tomcat10/bin/bootstrap.jar")) {
            model.stream().filter(entry -> !entry.isDirectory()).map(JarEntry::getName)
                    .filter(name -> name.startsWith("org/")).forEach(names::add);
        }
        try (JarOutputStream out = new JarOutputStream(Files.newOutputStream(target))) {
            for (Path jar : jars) {
                try (JarFile from = new JarFile(jar.toFile())) {
                    for (JarEntry entry : (Iterable<JarEntry>) from.stream()::iterator) {
                        if (names.remove(entry.getName())) {
                            out.putNextEntry(new ZipEntry(entry.getName()));
                            from.getInputStream(entry).transferTo(out);
                            out.closeEntry();
                        }
                    }
                }
            }
        }
    }

    /** What the JVM is told beside its class path. */
    List<String> options() {
        List<String> options = new ArrayList<>(JavaProcess.CHECKS);
        options.add("-Djava.library.path=" + library.getParent() + ":" + Folders.TCNATIVE);
        return options;
    }

    /** Starts Tomcat by a command, and waits until it says that it has started. */
    JavaProcess start(List<String> command, Map<String, String> environment) throws IOException, InterruptedException {
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().putAll(environment);
        JavaProcess process = new JavaProcess(builder);
        try {
            process.awaitLog(line -> line.contains("Server startup in"));
            return process;
        } catch (IOException | InterruptedException e) {
            process.kill();
            throw e;
        }
    }

    /** Copies the jar of a module into lib; makes it first where Maven has not come to that phase. */
    private void copyJar(String name) throws IOException {
        Path target = Folders.JAVA.resolve(name).resolve("target");
        String classPath = Files.readString(Folders.JAVA.resolve(module).resolve("target/classpath.txt"));
        Path built = Arrays.stream(classPath.strip().split(":")).map(Paths::get).filter(path -> path.startsWith(target))
                .findFirst().orElseThrow(() -> new IOException("the server has no " + name));
        Path jar = folder.resolve("lib/" + name + ".jar");
        if (Files.isRegularFile(built)) {
            Files.copy(built, jar);
            return;
        }
        try (OutputStream out = Files.newOutputStream(jar); JarOutputStream entries = new JarOutputStream(out);
                Stream<Path> files = Files.walk(built)) {
            for (Path file : (Iterable<Path>) files.filter(Files::isRegularFile)::iterator) {
                entries.putNextEntry(new ZipEntry(built.relativize(file).toString()));
                Files.copy(file, entries);
                entries.closeEntry();
            }
        }
    }

    @Override
    public void close() throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
        }
    }
}
