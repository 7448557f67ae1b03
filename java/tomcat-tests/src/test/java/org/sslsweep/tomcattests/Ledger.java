package org.sslsweep.tomcattests;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;

/** The ledger of a snapshot. */
final class Ledger {
    /** Phases of a connector's tasks. */
    static final Set<String> PHASES = Set.of("/handshake", "/read", "/write", "/close", "/io", "/task");
    /** What the servlets' errors say. */
    private static final String REASON = "no start line";

    /** One label. */
    record Label(String name, long tasks, long dirtyTasks, long leftovers, long arrivals, List<Entry> entries) {}

    /** One reason of one label. */
    record Entry(String label, String reason, long leftovers, long arrivals, boolean atLeast, String thread) {}

    final List<Label> labels = new ArrayList<>();
    final long unfinished;
    final long late;

    Ledger(JsonNode snapshot) {
        JsonNode ledger = snapshot.get("ledger");
        for (JsonNode label : ledger.get("labels")) {
            List<Entry> entries = new ArrayList<>();
            String name = label.get("label").textValue();
            for (JsonNode entry : label.get("entries")) {
                entries.add(new Entry(name, entry.get("reason").textValue(), entry.get("leftovers").longValue(),
                        entry.get("arrivals").longValue(), entry.get("at_least").booleanValue(),
                        entry.get("last").get("thread").textValue()));
            }
            labels.add(new Label(name, label.get("tasks").longValue(), label.get("dirty_tasks").longValue(),
                    label.get("leftovers").longValue(), label.get("arrivals").longValue(), entries));
        }
        unfinished = ledger.get("unfinished").longValue();
        late = ledger.get("late").longValue();
    }

    /** Tasks of a connector's workers, of all phases. */
    long workerTasks(String connector) {
        return labels.stream().filter(label -> isWorkers(connector, label.name())).mapToLong(Label::tasks).sum();
    }

    static boolean isWorkers(String connector, String label) {
        return label.startsWith(connector) && PHASES.contains(label.substring(connector.length()));
    }

    /** The errors that servlets left on purpose, by label. */
    List<Entry> leftByServlets() {
        return labels.stream().flatMap(label -> label.entries().stream())
                .filter(entry -> entry.reason().contains(REASON)).toList();
    }

    static long count(List<Entry> entries, Predicate<Entry> which) {
        return entries.stream().filter(which).mapToLong(entry -> entry.leftovers() + entry.arrivals()).sum();
    }

    @Override
    public String toString() {
        return labels + ", unfinished " + unfinished + ", late " + late;
    }
}
