package org.sslsweep.micrometer;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.micrometer.core.instrument.Clock;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MockClock;
import io.micrometer.core.instrument.Tags;
import io.micrometer.core.instrument.simple.SimpleConfig;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.prometheus.metrics.model.registry.PrometheusRegistry;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.sslsweep.ThreadHygiene;
import org.sslsweep.leaver.Leaver;

/** Micrometer's meters beside the Prometheus text. */
class HygieneMetricsTest {
    private final MockClock clock = new MockClock();

    @BeforeAll
    static void loadLibcrypto() {
        Leaver.drain();
    }

    /** Name, labels in alphabetical order, value. */
    private static Map<String, Double> series(String text) {
        Map<String, Double> series = new TreeMap<>();
        for (TextFormat.Sample sample : TextFormat.parse(text)) {
            series.put(sample.name + new TreeMap<>(sample.labels), sample.value);
        }
        return series;
    }

    @Test
    void prometheusReadsTheSameNamesAndFigures() {
        ThreadHygiene.run("micrometer \"quoted\\ \n", () -> Leaver.leave(3));
        ThreadHygiene.run("micrometer", () -> { });
        PrometheusMeterRegistry registry =
                new PrometheusMeterRegistry(PrometheusConfig.DEFAULT, new PrometheusRegistry(), clock);
        new HygieneMetrics().bindTo(registry);
        clock.add(Duration.ofSeconds(10));
        Map<String, Double> theirs = series(registry.scrape());
        Map<String, Double> ours = series(ThreadHygiene.prometheus());
        assertEquals(String.join("\n", ours.keySet()), String.join("\n", theirs.keySet()));
        assertEquals(ours, theirs);
        assertTrue(ours.containsKey("sslsweep_tasks_total{label=micrometer}"), ours::toString);
        assertTrue(ours.keySet().stream().anyMatch(name -> name.startsWith("sslsweep_library_info{library=/")));

        // What is new since: its label and its figures.
        ThreadHygiene.run("micrometer, later", () -> Leaver.leave(1));
        clock.add(Duration.ofSeconds(10));
        registry.scrape();
        ThreadHygiene.run("micrometer", () -> { });
        clock.add(Duration.ofSeconds(10));
        theirs = series(registry.scrape());
        assertEquals(series(ThreadHygiene.prometheus()), theirs);
        assertEquals(2, theirs.get("sslsweep_tasks_total{label=micrometer}"));
        assertEquals(1, theirs.get("sslsweep_dirty_tasks_total{label=micrometer, later}"));
    }

    @Test
    void metersHaveMicrometersNames() {
        ThreadHygiene.run("micrometer: names", () -> Leaver.leave(1));
        SimpleMeterRegistry registry = new SimpleMeterRegistry(SimpleConfig.DEFAULT, Clock.SYSTEM);
        new HygieneMetrics(Tags.of("server", "one")).bindTo(registry);
        FunctionCounter tasks =
                registry.get("sslsweep.tasks").tag("label", "micrometer: names").tag("server", "one").functionCounter();
        assertEquals(1, tasks.count());
        assertEquals("Guarded tasks that have ended", tasks.getId().getDescription().replaceAll("\\.$", ""));
        assertEquals("bytes", registry.get("sslsweep.thread.state").meter().getId().getBaseUnit());
    }

    /** A text with as many series as told, each with the number of the look as its figure. */
    private static String text(int look, int series) {
        StringBuilder text = new StringBuilder(
                "# HELP sslsweep_tasks_total Tasks.\n# TYPE sslsweep_tasks_total counter\n");
        for (int number = 0; number < series; number++) {
            text.append("sslsweep_tasks_total{label=\"").append(number).append("\"} ").append(look).append('\n');
        }
        return text.append("# TYPE sslsweep_blind_spots gauge\nsslsweep_blind_spots 0\n").toString();
    }

    @Test
    void takesOneLookForEachScrape() {
        AtomicInteger looks = new AtomicInteger();
        AtomicInteger labels = new AtomicInteger(100);
        SimpleMeterRegistry registry = new SimpleMeterRegistry(SimpleConfig.DEFAULT, clock);
        new HygieneMetrics(Tags.empty(), () -> text(looks.incrementAndGet(), labels.get())).bindTo(registry);
        assertEquals(1, looks.get());
        for (int scrape = 2; scrape < 10; scrape++) {
            clock.add(Duration.ofSeconds(1));
            for (Meter meter : registry.getMeters()) {
                double value = meter.measure().iterator().next().getValue();
                assertTrue(value == scrape || meter.getId().getName().equals("sslsweep.blind.spots"), "value " + value);
            }
            assertEquals(scrape, looks.get());
        }
        // A registry that reads each meter twice in a row.
        for (Meter meter : registry.getMeters()) {
            meter.measure().iterator().next().getValue();
            meter.measure().iterator().next().getValue();
        }
        assertEquals(9, looks.get());
    }

    @Test
    void seriesComeAndGoInPrometheusRegistryToo() {
        AtomicInteger labels = new AtomicInteger(3);
        PrometheusMeterRegistry registry =
                new PrometheusMeterRegistry(PrometheusConfig.DEFAULT, new PrometheusRegistry(), clock);
        new HygieneMetrics(Tags.empty(), () -> text(5, labels.get())).bindTo(registry);
        for (int number : new int[] {7, 0, 2, 5}) {
            labels.set(number);
            for (int scrape = 0; scrape < 2; scrape++) {
                clock.add(Duration.ofSeconds(1));
                registry.scrape();
            }
            assertEquals(series(text(5, number)), series(registry.scrape()));
        }
    }

    @Test
    void seriesComeAndGo() {
        AtomicInteger looks = new AtomicInteger();
        AtomicInteger labels = new AtomicInteger(3);
        SimpleMeterRegistry registry = new SimpleMeterRegistry(SimpleConfig.DEFAULT, clock);
        new HygieneMetrics(Tags.empty(), () -> text(looks.incrementAndGet(), labels.get())).bindTo(registry);
        assertEquals(4, registry.getMeters().size());
        for (int number : new int[] {7, 7, 2, 5}) {
            labels.set(number);
            clock.add(Duration.ofSeconds(1));
            registry.getMeters().forEach(meter -> meter.measure().iterator().next().getValue());
            assertEquals(number + 1, registry.getMeters().size());
        }
        assertEquals(looks.get(), registry.get("sslsweep.tasks").tag("label", "4").functionCounter().count());
    }

    @Test
    void readsTheTextFormat() {
        List<TextFormat.Sample> samples = TextFormat.parse("# HELP a_total Two\\nlines.\n# TYPE a_total counter\n"
                + "a_total{x=\"1,\\\"}\\\\\\n\",y=\"\"} 5\n\n# TYPE b gauge\nb -1.5\n");
        assertEquals(2, samples.size());
        assertEquals("Two\nlines.", samples.get(0).help);
        assertTrue(samples.get(0).counter);
        assertEquals(Map.of("x", "1,\"}\\\n", "y", ""), samples.get(0).labels);
        assertEquals(5, samples.get(0).value);
        assertFalse(samples.get(1).counter);
        assertEquals(-1.5, samples.get(1).value);
        for (String text : new String[] {
            "a", "a ", "a{", "a{x", "a{x=", "a{x=\"", "a{x=\"1\\", "a{x=\"1\"} b", "{} 1"
        }) {
            assertThrows(IllegalArgumentException.class, () -> TextFormat.parse(text), text);
        }
    }
}
