package org.sslsweep;

/** Thrown at the end of a task that left errors, by the policy {@link Policy#ASSERT}. The ledger names them. */
public final class DirtyTaskException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    /** The task's label. */
    private final String label;
    /** Errors that it left. */
    private final int errors;

    DirtyTaskException(String label, int errors) {
        super("task \"" + label + "\" left " + errors + (errors == 1 ? " error" : " errors")
                + " in OpenSSL's error queue; ThreadHygiene.snapshot() says which");
        this.label = label;
        this.errors = errors;
    }

    /** Label of the task. */
    public String label() {
        return label;
    }

    /** Errors that it left. A queue holds 15 for each libcrypto: there may have been more. */
    public int errors() {
        return errors;
    }
}
