package org.sslsweep.tomcat;

import org.sslsweep.Policy;
import org.sslsweep.Release;

/** What the listener's attributes say, checked. Immutable. */
final class ListenerSettings {
    /** Null: the process's own. */
    final Policy policy;
    /** Null: the process's own. */
    final Release release;
    final String labelPattern;
    final boolean jmx;

    /**
     * Takes the attributes as they were written; null where one was not.
     *
     * @throws IllegalArgumentException for a value that is none, with those that are
     */
    ListenerSettings(String policy, String observeOnly, String release, String label, String jmx) {
        boolean observes = flag("observeOnly", observeOnly, false);
        this.policy = policy(policy, observes);
        this.release = release(release);
        this.jmx = flag("jmx", jmx, true);
        labelPattern = label == null || label.isBlank() ? ConnectorLabels.DEFAULT_PATTERN : label;
        // Whether it is a pattern does not depend on the connector.
        ConnectorLabels.base(labelPattern, "https-openssl-nio-8443", 8443);
    }

    private static Policy policy(String text, boolean observes) {
        if (text == null) {
            return observes ? Policy.OBSERVE : null;
        }
        switch (text) {
            case "observe":
                return Policy.OBSERVE;
            case "clear":
                if (observes) {
                    throw new IllegalArgumentException(
                            "policy=\"clear\" and observeOnly=\"true\" contradict each other; keep one of them");
                }
                return Policy.CLEAR;
            default:
                throw bad("policy", text, "\"clear\" (the default) or \"observe\"");
        }
    }

    private static Release release(String text) {
        if (text == null) {
            return null;
        }
        switch (text) {
            case "default":
                return Release.DEFAULT;
            case "every-task":
                return Release.EVERY_TASK;
            case "thread-exit":
                return Release.THREAD_EXIT;
            case "park":
                return Release.PARK;
            case "never":
                return Release.NEVER;
            default:
                throw bad("release", text, "\"default\", \"every-task\", \"thread-exit\", \"park\" or \"never\"");
        }
    }

    private static boolean flag(String name, String text, boolean otherwise) {
        if (text == null) {
            return otherwise;
        }
        if (text.equals("true") || text.equals("false")) {
            return text.equals("true");
        }
        throw bad(name, text, "\"true\" or \"false\"");
    }

    private static IllegalArgumentException bad(String name, String text, String allowed) {
        return new IllegalArgumentException(HygieneListener.class.getName() + ": " + name + "=\"" + text
                + "\" is not understood; allowed are " + allowed);
    }
}
