//! A module refuses to load because some other import left an error.

use sslsweep::hygiene::{Guard, ledger};
use sslsweep_libssl::{Tls, faults};

use crate::common::Outcome;

/// The start of a library that insists on a clean queue.
fn start(tls: &'static Tls) -> Result<(), String> {
    match tls.peek_error() {
        0 => Ok(()),
        code => Err(format!("refusing to start: {}", tls.error_text(code))),
    }
}

fn check(tls: &'static Tls) -> Outcome {
    faults::pem_junk(tls);
    let refused = start(tls).expect_err("there is an error in the queue");
    assert!(refused.to_lowercase().replace('_', " ").contains("no start line"), "{refused}");

    let guard = Guard::enter("start");
    start(tls)?;
    drop(guard);
    let ledger = ledger();
    let start = ledger.label("start").ok_or("no start")?;
    assert_eq!((start.arrivals, start.leftovers, start.dirty_tasks), (1, 0, 0));
    let arrival = &start.entries[0];
    assert_eq!((arrival.arrivals, arrival.leftovers), (1, 0));
    assert!(arrival.last.file.ends_with("pem_lib.c") && arrival.last.line > 0, "{arrival:?}");
    assert!(arrival.benign.is_some(), "{arrival:?}");
    Ok(())
}

crate::on_lines!(check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
