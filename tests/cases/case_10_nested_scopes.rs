//! A scope that clears the queue when it is left takes an error of the scope around it along.

use std::time::SystemTime;

use sslsweep::hygiene::{Policy, Task, ledger, run};
use sslsweep_libssl::{Tls, faults};

use crate::common::{Expected, Outcome, told};

/// An error of an application, as its own code reports them.
fn own_error(tls: &'static Tls) -> u64 {
    assert!(tls.library().raise(128, 7, c"application", 1));
    tls.peek_last_error()
}

fn leave_two(tls: &'static Tls) {
    faults::pem_junk(tls);
    faults::pem_junk(tls);
}

fn check(tls: &'static Tls) -> Outcome {
    let own = own_error(tls);
    leave_two(tls);
    assert_eq!(tls.library().depth(), 3);
    tls.clear_errors();
    assert_eq!(tls.peek_error(), 0, "the outer scope's own error is gone: {own}");

    // A guard inside another rolls back, whatever its policy says ...
    let since = SystemTime::now();
    run("outer", || {
        own_error(tls);
        for policy in [Policy::Clear, Policy::RollBack] {
            run(Task::new("inner").policy(policy), || leave_two(tls));
            assert_eq!((tls.library().depth(), tls.peek_last_error()), (1, own));
        }
    });
    assert_eq!(tls.peek_error(), 0, "the outermost one clears");
    // ... and an outermost one does if it is told to.
    own_error(tls);
    run(Task::new("library").policy(Policy::RollBack), || leave_two(tls));
    assert_eq!((tls.library().depth(), tls.peek_last_error()), (1, own));
    tls.clear_errors();

    let reason = "no start line";
    told(Expected { label: "inner", reason, file: "pem_lib.c", count: 4, since });
    told(Expected { label: "library", reason, file: "pem_lib.c", count: 2, since });
    let ledger = ledger();
    let outer = ledger.label("outer").ok_or("no outer")?;
    assert_eq!((outer.leftovers, outer.entries.len()), (1, 1), "only its own: {outer:?}");
    assert_eq!(outer.entries[0].code, own);
    assert_eq!(ledger.arrivals(), 0);
    Ok(())
}

crate::on_lines!(check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
