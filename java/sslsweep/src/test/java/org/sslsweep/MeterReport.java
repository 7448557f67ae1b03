package org.sslsweep;

import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import org.sslsweep.micrometer.HygieneMetrics;

/** A program that says how many meters there are. */
final class MeterReport {
    private MeterReport() {}

    public static void main(String[] arguments) {
        SimpleMeterRegistry registry = new SimpleMeterRegistry();
        new HygieneMetrics().bindTo(registry);
        System.out.println("meters=" + registry.getMeters().size());
    }
}
