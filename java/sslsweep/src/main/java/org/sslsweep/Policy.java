package org.sslsweep;

/** What happens to errors that a task left in the error queue of its thread. Their order is that of {@link Natives}. */
public enum Policy {
    /** They are recorded and cleared. Inside another guard, only what came since is taken back. */
    CLEAR,
    /** They are recorded and taken back; errors from before stay: for libraries, whose caller owns the queue. */
    ROLL_BACK,
    /** They are recorded, and stay. */
    OBSERVE,
    /** They are recorded and cleared, and {@link Guard#close} throws a {@link DirtyTaskException}: for tests. */
    ASSERT;

    static final int MASK = 3;
    private static final Policy[] ALL = values();

    static Policy ofPacked(int packed) {
        return ALL[packed & MASK];
    }
}
