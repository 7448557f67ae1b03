package org.sslsweep.micrometer;

import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tags;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;

/**
 * The meters of one registry.
 *
 * <p>A registry reads its meters one by one and does not say when a scrape begins. It has begun when a meter is read
 * for the second time from one look at the process: then the next look is taken, for all meters.
 */
final class Binding {
    /** Some registries read a meter twice in a row; that is no new scrape. */
    private static final long SHORTEST = TimeUnit.MILLISECONDS.toNanos(100);

    private final MeterRegistry registry;
    private final Tags tags;
    private final Supplier<String> source;
    /** Held while a look is taken. Nobody waits for it inside a scrape: registries have locks of their own. */
    private final ReentrantLock lock = new ReentrantLock();
    private final Map<Object, Series> series = new HashMap<>();
    private volatile long look;
    private volatile long taken;

    Binding(MeterRegistry registry, Tags tags, Supplier<String> source) {
        this.registry = registry;
        this.tags = tags;
        this.source = source;
    }

    /** Takes a look: new figures get their meters, those that are gone lose them. */
    void refresh() {
        if (!lock.tryLock()) {
            // Another thread takes one just now.
            return;
        }
        try {
            List<TextFormat.Sample> samples = TextFormat.parse(source.get());
            look++;
            taken = registry.config().clock().monotonicTime();
            Map<Object, Series> old = new HashMap<>(series);
            for (TextFormat.Sample sample : samples) {
                Object key = Map.entry(sample.name, sample.labels);
                Series known = old.remove(key);
                if (known != null) {
                    known.value = sample.value;
                } else {
                    Series made = new Series(sample.value, look);
                    series.put(key, made);
                    made.meter = register(sample, made);
                }
            }
            forget(old);
        } finally {
            lock.unlock();
        }
    }

    private void forget(Map<Object, Series> gone) {
        for (Map.Entry<Object, Series> entry : gone.entrySet()) {
            series.remove(entry.getKey());
            registry.remove(entry.getValue().meter);
        }
    }

    private Meter register(TextFormat.Sample sample, Series made) {
        Tags all = tags;
        for (Map.Entry<String, String> label : sample.labels.entrySet()) {
            all = all.and(label.getKey(), label.getValue());
        }
        // A registry makes the name its own: Prometheus' puts back what is taken off here.
        if (sample.counter) {
            return FunctionCounter.builder(dotted(sample.name, "_total"), made, this::read)
                    .description(sample.help).tags(all).register(registry);
        }
        boolean bytes = sample.name.endsWith("_bytes");
        return Gauge.builder(dotted(sample.name, "_bytes"), made, this::read)
                .description(sample.help).tags(all).baseUnit(bytes ? "bytes" : null)
                .strongReference(true).register(registry);
    }

    private static String dotted(String name, String end) {
        String base = name.endsWith(end) ? name.substring(0, name.length() - end.length()) : name;
        return base.replace('_', '.');
    }

    private double read(Series of) {
        boolean again = of.readFrom == look;
        if (again && registry.config().clock().monotonicTime() - taken >= SHORTEST) {
            refresh();
        }
        of.readFrom = look;
        return of.value;
    }
}
