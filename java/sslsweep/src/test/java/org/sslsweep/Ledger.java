package org.sslsweep;

/** What the ledger says of one label. */
final class Ledger {
    private Ledger() {}

    /** Figures of a label; all are 0 where it has none yet. */
    static TaskEntry of(String label) {
        for (TaskEntry entry : new Figures(ThreadHygiene.snapshot()).tasks()) {
            if (entry.getLabel().equals(label)) {
                return entry;
            }
        }
        return new TaskEntry(label, 0, 0, 0, 0, false);
    }

    static long leftovers(String label) {
        return of(label).getLeftovers();
    }

    static long arrivals(String label) {
        return of(label).getArrivals();
    }
}
