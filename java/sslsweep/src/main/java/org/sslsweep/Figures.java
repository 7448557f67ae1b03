package org.sslsweep;

import java.util.ArrayList;
import java.util.Date;
import java.util.List;
import java.util.Map;

/** The figures of one snapshot, and of one leftover. Throws IllegalArgumentException where the text is none. */
final class Figures {
    private final Map<String, Object> snapshot;
    private final List<Map<String, Object>> labels;

    Figures(String json) {
        snapshot = object(Json.parse(json));
        labels = objects(object(snapshot.get("ledger")).get("labels"));
    }

    /** Adds up a figure of all labels. */
    long sum(String name) {
        long sum = 0;
        for (Map<String, Object> label : labels) {
            sum += number(label, name);
        }
        return sum;
    }

    List<String> libraries() {
        List<String> lines = new ArrayList<>();
        for (Map<String, Object> library : objects(snapshot.get("libraries"))) {
            lines.add(text(library, "path") + " (" + text(library, "line") + ", " + text(library, "version") + ")");
        }
        return lines;
    }

    /** What is in the process and cannot be swept. */
    List<String> blindSpots() {
        List<String> lines = new ArrayList<>();
        for (Map<String, Object> spot : objects(snapshot.get("blind_spots"))) {
            lines.add(text(spot, "text"));
        }
        return lines;
    }

    long threadStates() {
        long sum = -1;
        for (Map<String, Object> library : objects(snapshot.get("libraries"))) {
            Long alive = numberOrNull(object(library.get("thread_states")), "alive");
            if (alive != null) {
                sum = Math.max(sum, 0) + alive;
            }
        }
        return sum;
    }

    List<String> findings() {
        List<String> lines = new ArrayList<>();
        for (Map<String, Object> finding : objects(snapshot.get("findings"))) {
            lines.add(text(finding, "level") + ": " + text(finding, "text") + " - " + text(finding, "next_step"));
        }
        return lines;
    }

    List<TaskEntry> tasks() {
        List<TaskEntry> entries = new ArrayList<>();
        for (Map<String, Object> label : labels) {
            entries.add(new TaskEntry(text(label, "label"), number(label, "tasks"), number(label, "dirty_tasks"),
                    number(label, "leftovers"), number(label, "arrivals"), flag(label, "at_least")));
        }
        return entries;
    }

    /** One of {@link Natives#leftovers}. */
    static LeftoverEntry leftover(String json) {
        Map<String, Object> entry = object(Json.parse(json));
        String source = text(entry, "file") + ":" + number(entry, "line");
        String function = textOrNull(entry, "function");
        if (function != null) {
            source += " (" + function + ")";
        }
        return new LeftoverEntry(text(entry, "label"), text(entry, "reason"), number(entry, "leftovers"),
                number(entry, "arrivals"), flag(entry, "at_least"), text(entry, "library"),
                textOrNull(entry, "benign"), new Date(number(entry, "first_ms")), new Date(number(entry, "last_ms")),
                text(entry, "thread"), number(entry, "thread_id"), source, textOrNull(entry, "data"),
                numberOrNull(entry, "connection"));
    }

    private static String text(Map<String, Object> object, String name) {
        String text = textOrNull(object, name);
        if (text == null) {
            throw unexpected(name, null);
        }
        return text;
    }

    private static String textOrNull(Map<String, Object> object, String name) {
        Object value = object.get(name);
        if (value != null && !(value instanceof String)) {
            throw unexpected(name, value);
        }
        return (String) value;
    }

    private static long number(Map<String, Object> object, String name) {
        Long number = numberOrNull(object, name);
        if (number == null) {
            throw unexpected(name, null);
        }
        return number;
    }

    private static Long numberOrNull(Map<String, Object> object, String name) {
        Object value = object.get(name);
        if (value != null && !(value instanceof Number)) {
            throw unexpected(name, value);
        }
        return value == null ? null : Long.valueOf(((Number) value).longValue());
    }

    private static boolean flag(Map<String, Object> object, String name) {
        Object value = object.get(name);
        if (!(value instanceof Boolean)) {
            throw unexpected(name, value);
        }
        return (Boolean) value;
    }

    @SuppressWarnings("unchecked") // Json makes no other maps.
    private static Map<String, Object> object(Object value) {
        if (!(value instanceof Map)) {
            throw unexpected("an object", value);
        }
        return (Map<String, Object>) value;
    }

    private static List<Map<String, Object>> objects(Object value) {
        if (!(value instanceof List)) {
            throw unexpected("an array", value);
        }
        List<Map<String, Object>> objects = new ArrayList<>();
        for (Object element : (List<?>) value) {
            objects.add(object(element));
        }
        return objects;
    }

    private static IllegalArgumentException unexpected(String name, Object value) {
        return new IllegalArgumentException("not a snapshot of this version: " + name + " is " + value);
    }
}
