package org.sslsweep.testserver;

import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Map;
import org.apache.tomcat.util.json.JSONParser;
import org.apache.tomcat.util.json.ParseException;
import org.sslsweep.ThreadHygiene;

/** What the shim knows about this process, as members of the answers to {@code states} and {@code stats}. */
final class Shim {
    private long peak;

    /** Threads, and the states that OpenSSL keeps for them; 0 states where the library does not tell. */
    String states() {
        return states(snapshot());
    }

    /** The same, and what the guards have recorded. */
    String stats() {
        Map<?, ?> snapshot = snapshot();
        long tasks = 0;
        long dirtyTasks = 0;
        long leftovers = 0;
        for (Object label : list(map(snapshot, "ledger"), "labels")) {
            Map<?, ?> figures = (Map<?, ?>) label;
            tasks += number(figures, "tasks");
            dirtyTasks += number(figures, "dirty_tasks");
            leftovers += number(figures, "leftovers");
        }
        return states(snapshot) + ",\"ledger\":{\"tasks\":" + tasks + ",\"dirty_tasks\":" + dirtyTasks
                + ",\"leftovers\":" + leftovers + "}";
    }

    private String states(Map<?, ?> snapshot) {
        long alive = 0;
        long bytes = 0;
        for (Object library : list(snapshot, "libraries")) {
            Map<?, ?> states = map((Map<?, ?>) library, "thread_states");
            alive += number(states, "alive");
            bytes += number(states, "bytes");
        }
        peak = Math.max(peak, alive);
        return "\"live_threads\":" + ManagementFactory.getThreadMXBean().getThreadCount()
                + ",\"thread_states\":{\"alive\":" + alive + ",\"peak\":" + peak + ",\"bytes\":" + bytes
                + ",\"longest_chain\":null}";
    }

    private static Map<?, ?> snapshot() {
        try {
            return new JSONParser(ThreadHygiene.snapshot()).parseObject();
        } catch (ParseException e) {
            throw new IllegalStateException("the snapshot is not JSON", e);
        }
    }

    private static Map<?, ?> map(Map<?, ?> object, String name) {
        return (Map<?, ?>) object.get(name);
    }

    private static List<?> list(Map<?, ?> object, String name) {
        return (List<?>) object.get(name);
    }

    private static long number(Map<?, ?> object, String name) {
        Object number = object.get(name);
        return number == null ? 0 : ((Number) number).longValue();
    }
}
