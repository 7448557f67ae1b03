package org.sslsweep;

/** The native call that does nothing, which the costs of guards are compared with. */
public final class NativeCall {
    private NativeCall() {}

    /** Calls it. */
    public static void nothing() {
        Natives.nothing();
    }
}
