/**
 * Keeps the threads of a JVM clean of what tasks leave in OpenSSL's per-thread error queue.
 *
 * <p>{@link org.sslsweep.ThreadHygiene} is where applications begin. Nothing here loads an OpenSSL: what other native
 * libraries have loaded is found and swept.
 *
 * <p>System properties, read when the first class is used:
 * <ul>
 * <li>{@code org.sslsweep.library}: the native library's file, or its folder. Without it, the folders of
 * {@code java.library.path} are searched, then the jar has one.</li>
 * <li>{@code org.sslsweep.workdir}: where the jar's library is unpacked; {@code java.io.tmpdir} otherwise. The file is
 * removed as soon as it is loaded.</li>
 * <li>{@code org.sslsweep.pin}: {@code false} lets virtual threads leave their carriers inside guards; see
 * {@link org.sslsweep.ThreadHygiene}.</li>
 * <li>{@code org.sslsweep.loaded} is set, not read: the file that is loaded, its version, and the class loader that it
 * is loaded for. One copy serves a JVM, for its whole life.</li>
 * </ul>
 *
 * <p>From Java 24 on the JVM warns of native libraries without {@code --enable-native-access=ALL-UNNAMED}.
 */
package org.sslsweep;
