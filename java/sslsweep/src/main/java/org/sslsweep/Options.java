package org.sslsweep;

import java.util.Objects;

/**
 * How tasks are guarded: policy and release. Immutable; may be shared between threads.
 *
 * <p>What is not chosen is the process's own choice at the moment when a task begins
 * ({@link ThreadHygiene#setPolicy}, the MBean).
 */
public final class Options {
    /** Nothing chosen. */
    public static final Options INHERITED = new Options(0, Policy.MASK | Release.MASK);

    /** The process's choice. */
    private static volatile int processWide;

    private final int chosen;
    /** Bits that are taken from the process's choice. */
    private final int inherited;

    private Options(int chosen, int inherited) {
        this.chosen = chosen;
        this.inherited = inherited;
    }

    /** These options with a policy of their own. */
    public Options policy(Policy policy) {
        return new Options(chosen & ~Policy.MASK | policy.ordinal(), inherited & ~Policy.MASK);
    }

    /** These options with a release of their own. */
    public Options release(Release release) {
        return new Options(chosen & ~Release.MASK | release.ordinal() << Release.SHIFT, inherited & ~Release.MASK);
    }

    /** The policy that a task which begins now gets. */
    public Policy policy() {
        return Policy.ofPacked(packed());
    }

    /** The release that a task which begins now gets. */
    public Release release() {
        return Release.ofPacked(packed());
    }

    /** As {@link Natives} takes them: bits 0 and 1 the policy, bits 2 to 4 the release. */
    int packed() {
        return chosen | processWide & inherited;
    }

    /** As {@link #packed}, for hooks, which have nobody to throw at: instead of ASSERT there is CLEAR. */
    int packedForHooks() {
        int packed = packed();
        return isAssert(packed) ? packed & ~Policy.MASK : packed;
    }

    static boolean isAssert(int packed) {
        return (packed & Policy.MASK) == Policy.ASSERT.ordinal();
    }

    /** Sets what is inherited by tasks that begin from now on. */
    static synchronized void setProcessWide(Policy policy) {
        processWide = processWide & ~Policy.MASK | Objects.requireNonNull(policy, "policy").ordinal();
    }

    /** Sets what is inherited by tasks that begin from now on. */
    static synchronized void setProcessWide(Release release) {
        int bits = Objects.requireNonNull(release, "release").ordinal() << Release.SHIFT;
        processWide = processWide & ~Release.MASK | bits;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Options && ((Options) other).chosen == chosen
                && ((Options) other).inherited == inherited;
    }

    @Override
    public int hashCode() {
        return 31 * chosen + inherited;
    }

    @Override
    public String toString() {
        return "policy " + ((inherited & Policy.MASK) == 0 ? policy() : "inherited")
                + ", release " + ((inherited & Release.MASK) == 0 ? release() : "inherited");
    }
}
