package org.sslsweep;

import java.io.File;
import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;

/** A program with the jar in two class loaders, as a server has that finds it in two web applications. */
final class TwoLoaders {
    private TwoLoaders() {}

    public static void main(String[] arguments) throws Exception {
        List<URL> urls = new ArrayList<>();
        for (String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
            urls.add(new File(entry).toURI().toURL());
        }
        ClassLoader platform = ClassLoader.getPlatformClassLoader();
        for (String name : new String[] {"first", "second", "third"}) {
            if (name.equals("second") && arguments.length > 0) {
                System.clearProperty(NativeLoader.LIBRARY_PROPERTY);
            }
            ClassLoader loader = new URLClassLoader(name, urls.toArray(new URL[0]), platform);
            Class<?> hygiene = loader.loadClass(ThreadHygiene.class.getName());
            System.out.println(name + ": " + hygiene.getMethod("unavailableReason").invoke(null));
            System.out.println(name + " is " + Integer.toHexString(System.identityHashCode(loader)));
        }
    }
}
