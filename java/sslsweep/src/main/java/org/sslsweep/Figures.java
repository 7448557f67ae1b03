package org.sslsweep;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.Date;
import java.util.List;
import java.util.Map;

/** The figures of one snapshot. Throws IllegalArgumentException where the text is none. */
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

    long threadStates() {
        long sum = -1;
        for (Map<String, Object> library : objects(snapshot.get("libraries"))) {
            Object alive = object(library.get("thread_states")).get("alive");
            if (alive != null) {
                sum = Math.max(sum, 0) + number(alive);
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
                    number(label, "leftovers"), number(label, "arrivals"), (Boolean) label.get("at_least")));
        }
        return entries;
    }

    List<LeftoverEntry> leftovers(int top) {
        List<LeftoverEntry> entries = new ArrayList<>();
        for (Map<String, Object> label : labels) {
            for (Map<String, Object> entry : objects(label.get("entries"))) {
                entries.add(leftover(text(label, "label"), entry));
            }
        }
        entries.sort(Comparator.comparingLong(LeftoverEntry::getLeftovers)
                .thenComparingLong(LeftoverEntry::getArrivals).reversed());
        return new ArrayList<>(entries.subList(0, Math.min(top, entries.size())));
    }

    private static LeftoverEntry leftover(String label, Map<String, Object> entry) {
        Map<String, Object> last = object(entry.get("last"));
        String source = text(last, "file") + ":" + number(last, "line");
        if (last.get("function") != null) {
            source += " (" + text(last, "function") + ")";
        }
        Object connection = last.get("connection");
        return new LeftoverEntry(label, text(entry, "reason"), number(entry, "leftovers"), number(entry, "arrivals"),
                (Boolean) entry.get("at_least"), text(entry, "library"), (String) entry.get("benign"),
                time(entry.get("first")), time(last.get("time")), text(last, "thread"), source,
                connection == null ? null : number(connection));
    }

    private static Date time(Object value) {
        Map<String, Object> time = object(value);
        return new Date(number(time, "secs_since_epoch") * 1000 + number(time, "nanos_since_epoch") / 1_000_000);
    }

    private static String text(Map<String, Object> object, String name) {
        Object value = object.get(name);
        if (!(value instanceof String)) {
            throw unexpected(name, value);
        }
        return (String) value;
    }

    private static long number(Map<String, Object> object, String name) {
        Object value = object.get(name);
        if (!(value instanceof Number)) {
            throw unexpected(name, value);
        }
        return number(value);
    }

    private static long number(Object value) {
        return ((Number) value).longValue();
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> object(Object value) {
        if (!(value instanceof Map)) {
            throw unexpected("an object", value);
        }
        return (Map<String, Object>) value;
    }

    @SuppressWarnings("unchecked")
    private static List<Map<String, Object>> objects(Object value) {
        if (!(value instanceof List)) {
            throw unexpected("an array", value);
        }
        return (List<Map<String, Object>>) value;
    }

    private static IllegalArgumentException unexpected(String name, Object value) {
        return new IllegalArgumentException("not a snapshot of this version: " + name + " is " + value);
    }
}
