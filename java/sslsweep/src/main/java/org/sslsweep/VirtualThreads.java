package org.sslsweep;

import java.lang.System.Logger.Level;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.atomic.AtomicBoolean;

/** Virtual threads, on the Java versions that have them. */
final class VirtualThreads {
    /** "false": guards do not keep a virtual thread on its carrier. */
    static final String PIN_PROPERTY = "org.sslsweep.pin";

    /** Thread.isVirtual (21 and later), or null. */
    private static final MethodHandle IS_VIRTUAL = isVirtual();
    private static final boolean MAY_PIN = !"false".equals(System.getProperty(PIN_PROPERTY));
    private static final AtomicBoolean SAID = new AtomicBoolean();

    private VirtualThreads() {}

    private static MethodHandle isVirtual() {
        try {
            return MethodHandles.publicLookup()
                    .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (ReflectiveOperationException older) {
            return null;
        }
    }

    /** Whether the calling thread is a virtual one. */
    static boolean isCurrent() {
        if (IS_VIRTUAL == null) {
            return false;
        }
        try {
            return (boolean) IS_VIRTUAL.invokeExact(Thread.currentThread());
        } catch (Throwable impossible) {
            // It declares no exception.
            throw new AssertionError(impossible);
        }
    }

    /** Keeps the calling virtual thread on its carrier, until {@link Natives#unpin}. False: not possible or wanted. */
    static boolean pin() {
        if (MAY_PIN && Natives.pin()) {
            return true;
        }
        if (SAID.compareAndSet(false, true)) {
            System.getLogger("org.sslsweep").log(Level.WARNING, "guards do not keep virtual threads on their carriers ("
                    + (MAY_PIN ? "this JVM has no way to" : "-D" + PIN_PROPERTY + "=false")
                    + "): what their tasks leave is cleared and counts as arrivals, since it may be another task's");
        }
        return false;
    }
}
