package org.sslsweep;

import java.util.concurrent.ConcurrentHashMap;

/**
 * The name of a kind of work, such as "read" or "https-8443 handshake", under which leftovers are reported.
 *
 * <p>One name for each kind of work, not for each request: 255 are told apart, for the life of the process; later ones
 * count together. Keep labels in constants where tasks are short. May be shared between threads.
 */
public final class TaskLabel {
    /** So many are cached; the library tells no more apart. */
    private static final int MOST = 255;
    private static final ConcurrentHashMap<String, TaskLabel> CACHE = new ConcurrentHashMap<>();

    private final String text;
    private final int number;

    private TaskLabel(String text) {
        this.text = text;
        // Without a library there are no guards, so that nobody asks for the number.
        this.number = Natives.isLoaded() ? Natives.label(text) : 0;
    }

    /**
     * The label of this text. Does not need the library: without it, {@link ThreadHygiene#guard} throws.
     *
     * @param text not empty; 128 bytes of it are told apart
     */
    public static TaskLabel of(String text) {
        TaskLabel label = CACHE.get(text);
        return label != null ? label : make(text);
    }

    private static TaskLabel make(String text) {
        if (text.isEmpty()) {
            throw new IllegalArgumentException("a task's label is empty; name the kind of work, such as \"read\"");
        }
        TaskLabel label = new TaskLabel(text);
        if (CACHE.size() >= MOST) {
            return label;
        }
        TaskLabel other = CACHE.putIfAbsent(text, label);
        return other != null ? other : label;
    }

    /** The text that it was made of. */
    public String text() {
        return text;
    }

    int number() {
        return number;
    }

    @Override
    public String toString() {
        return text;
    }
}
