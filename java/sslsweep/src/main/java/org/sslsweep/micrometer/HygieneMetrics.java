package org.sslsweep.micrometer;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.binder.MeterBinder;
import java.util.function.Supplier;
import org.sslsweep.ThreadHygiene;

/**
 * The figures of {@link ThreadHygiene#prometheus} as Micrometer's meters: {@code sslsweep.tasks} with the tag
 * {@code label} is {@code sslsweep_tasks_total} there, and in Micrometer's registry for Prometheus.
 *
 * <p>One look at the process is taken for each scrape, not for each meter. Labels and libraries that are new get their
 * meters with the look that sees them first; as a scrape is going on then, they may be in the next one only. Meters of
 * what is gone are removed.
 *
 * <p>Where the native library is not loaded, nothing is registered, and the log says so: metrics must not keep an
 * application from starting.
 */
public final class HygieneMetrics implements MeterBinder {
    private final Tags tags;
    private final Supplier<String> source;

    /** Meters with the tags of their figures only. */
    public HygieneMetrics() {
        this(Tags.empty());
    }

    /** Meters that all have {@code tags} as well. */
    public HygieneMetrics(Iterable<Tag> tags) {
        this(tags, ThreadHygiene::prometheus);
    }

    /** For tests: with another source of the text. */
    HygieneMetrics(Iterable<Tag> tags, Supplier<String> source) {
        this.tags = Tags.of(tags);
        this.source = source;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        if (ThreadHygiene.isAvailable()) {
            new Binding(registry, tags, source).refresh();
        } else {
            System.getLogger("org.sslsweep").log(System.Logger.Level.WARNING,
                    "no meters of sslsweep: " + ThreadHygiene.unavailableReason());
        }
    }
}
