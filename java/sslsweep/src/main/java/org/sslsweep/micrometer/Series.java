package org.sslsweep.micrometer;

import io.micrometer.core.instrument.Meter;

/** One figure that has a meter. */
final class Series {
    volatile double value;
    /** Number of the look that the meter was last read from. */
    volatile long readFrom;
    /** Its meter. Set and read while a look is taken. */
    Meter meter;

    Series(double value, long look) {
        this.value = value;
        // As if it had been read: where a scrape begins with a new series, it must not get an old look's figure.
        this.readFrom = look;
    }
}
