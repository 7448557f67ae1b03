//! A server prints "ignoring stale error" when a timer has run, and nobody can tell who left it.

use std::time::SystemTime;

use sslsweep::hygiene::{Task, ledger, run};
use sslsweep_libssl::{Outcome as Class, Tls, faults};

use crate::common::{Expected, Idle, Outcome, rsa_identity, told};

fn check(tls: &'static Tls) -> Outcome {
    let (one, other) = (rsa_identity()?, rsa_identity()?);
    // A script checks a signature and ignores that it is wrong.
    let timer = || {
        let (one, other) = (one.certificate.as_bytes(), other.certificate.as_bytes());
        assert!(!faults::verify_signature(tls, one, other));
    };
    let mut idle = Idle::new(tls)?;

    timer();
    let left = tls.library().depth() as u64;
    assert!(left > 0);
    assert_eq!(idle.read(), idle.misread(Class::Ssl));
    // A guard around the finder alone knows no more than the server did ...
    assert_eq!(run("accept", || idle.read()), Class::WantRead);
    let found = ledger();
    let accept = found.label("accept").ok_or("no accept")?;
    assert_eq!((accept.arrivals, accept.leftovers, accept.dirty_tasks), (left, 0, 0));

    // ... but a guard around the timer does.
    let since = SystemTime::now();
    run(Task::new("timer 86400").connection(9), timer);
    assert_eq!(run("accept", || idle.read()), Class::WantRead);
    let told = told(Expected { label: "timer 86400", reason: "rsa", file: ".c", count: 1, since });
    assert_eq!(told.last.connection, Some(9));
    let after = ledger();
    let timer = after.label("timer 86400").ok_or("no timer")?;
    assert_eq!((timer.leftovers, timer.dirty_tasks), (left, 1));
    assert_eq!(
        after.label("accept").map(|accept| accept.arrivals),
        Some(left),
        "no more than before"
    );
    Ok(())
}

crate::on_lines!(check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
