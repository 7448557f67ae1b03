//! A session that works is dropped because another task failed to parse something.

use std::time::SystemTime;

use sslsweep::hygiene::{ledger, run};
use sslsweep_libssl::{Outcome as Class, Tls, faults};

use crate::common::{Expected, Idle, Outcome, told};

fn check(tls: &'static Tls) -> Outcome {
    let mut session = Idle::new(tls)?;

    faults::pem_junk(tls);
    let believed = session.read();
    assert_eq!(believed, session.misread(Class::Ssl));
    assert_ne!(tls.peek_error(), 0, "the read has not cleared");
    tls.clear_errors();

    let since = SystemTime::now();
    run("lookup", || faults::pem_junk(tls));
    assert_eq!(run("session", || session.read()), Class::WantRead);
    let reason = "no start line";
    let left = told(Expected { label: "lookup", reason, file: "pem_lib.c", count: 1, since });
    assert!(!left.at_least, "{left:?}");
    assert_eq!(ledger().label("session").map(|session| session.leftovers), Some(0));
    Ok(())
}

crate::on_lines!(check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
