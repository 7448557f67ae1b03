package org.sslsweep;

/** When a thread's state is given back to libcrypto. Their order is that of {@link Natives}. */
public enum Release {
    /** What the release line of each library needs: {@link #EVERY_TASK} on 1.0.x, {@link #NEVER} later. */
    DEFAULT,
    /**
     * At the end of each outermost task. From OpenSSL 1.1.0 on this throws the thread's random generators away each
     * time, which costs 8 to 17 microseconds a task.
     */
    EVERY_TASK,
    /** When the thread ends. */
    THREAD_EXIT,
    /** When a native pool says that the thread rests; Java has no call for that. */
    PARK,
    /** Not at all. OpenSSL 1.1.0 and later give it back themselves when the thread ends. */
    NEVER;

    static final int SHIFT = 2;
    static final int MASK = 7 << SHIFT;
    private static final Release[] ALL = values();

    static Release ofPacked(int packed) {
        return ALL[(packed & MASK) >>> SHIFT];
    }
}
