package org.sslsweep;

/** A program that makes a label for each task, as it should not. */
final class Flood {
    private static final int LABELS = 50_000;

    private Flood() {}

    public static void main(String[] arguments) {
        TaskLabel known = TaskLabel.of("known");
        for (int number = 0; number < LABELS; number++) {
            ThreadHygiene.run("flood " + number, () -> { });
        }
        ThreadHygiene.run("known", () -> { });
        boolean cached = TaskLabel.of("known") == known;
        boolean late = TaskLabel.of("late") == TaskLabel.of("late");
        System.out.println("known=" + Ledger.of("known").getTasks() + " cached=" + cached + " late-cached=" + late
                + " first=" + Ledger.of("flood 0").getTasks() + " others=" + Ledger.of("(other labels)").getTasks()
                + " labels=" + new Figures(ThreadHygiene.snapshot()).tasks().size());
    }
}
