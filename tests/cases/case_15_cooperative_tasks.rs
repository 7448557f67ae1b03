//! Tasks that share a thread and yield to each other: what one leaves meets the next at once.

use std::time::SystemTime;

use sslsweep::hygiene::{Guard, Policy, Task, ledger};
use sslsweep_libssl::{Outcome as Class, Tls, faults};

use crate::common::{Expected, Idle, Outcome, told};

const TURNS: u64 = 50;

/// What each of the three tasks has seen.
#[derive(Default, Debug, PartialEq)]
struct Seen {
    written: u64,
    healthy: u64,
    misread: u64,
    queued: u64,
}

/// A scheduler of three tasks; each turn of a task ends at a point where it yields.
fn schedule(
    tls: &'static Tls,
    mut turn: impl FnMut(&'static str, &mut dyn FnMut()),
) -> Outcome<Seen> {
    let mut idle = Idle::new(tls)?;
    let mut seen = Seen::default();
    for _ in 0..TURNS {
        turn("writer", &mut || {
            faults::broken_pipe(tls);
            seen.written += 1;
        });
        turn("reader", &mut || match idle.read() {
            Class::WantRead => seen.healthy += 1,
            _ => seen.misread += 1,
        });
        turn("counter", &mut || {
            seen.queued += tls.library().depth() as u64;
            tls.clear_errors();
        });
    }
    Ok(seen)
}

fn check(tls: &'static Tls) -> Outcome {
    let mended = tls.version().starts_with("OpenSSL 4.");
    let (healthy, misread) = if mended { (TURNS, 0) } else { (0, TURNS) };
    let without = schedule(tls, |_, work| work())?;
    assert_eq!(without, Seen { written: TURNS, healthy, misread, queued: TURNS });

    let since = SystemTime::now();
    let with = schedule(tls, |label, work| {
        let _guard = Guard::enter(label);
        work();
    })?;
    assert_eq!(with, Seen { written: TURNS, healthy: TURNS, misread: 0, queued: 0 });
    let told = told(Expected {
        label: "writer",
        reason: "broken pipe",
        file: "sslsweep-bio",
        count: TURNS,
        since,
    });
    assert!(!told.at_least);
    let ledger = ledger();
    for label in ["reader", "counter"] {
        let figures = ledger.label(label).ok_or("a task is missing")?;
        assert_eq!((figures.tasks, figures.dirty_tasks, figures.arrivals), (TURNS, 0, 0));
    }

    // In tests of the program: the turn that leaves an error fails.
    let strict = schedule(tls, |label, work| {
        let guard = Guard::enter(Task::new(label).policy(Policy::Assert));
        work();
        let finished = guard.finish();
        assert_eq!(finished.is_err(), label == "writer");
        if let Err(dirty) = finished {
            assert!(dirty.to_string().contains("task `writer` left 1 error(s)"), "{dirty}");
        }
    })?;
    assert_eq!(strict.misread, 0);
    Ok(())
}

crate::on_lines!(check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
