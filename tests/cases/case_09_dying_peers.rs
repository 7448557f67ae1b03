//! One peer that dies takes the good ones of its worker with it.

use std::time::SystemTime;

use sslsweep::hygiene::{Task, ledger, run};
use sslsweep_libssl::{Context, Outcome as Class, Tls};

use crate::common::{Expected, Idle, Outcome, contexts, told};

const ROUNDS: usize = 1000;
/// Rounds in which a connection is made to die; in the others the last one stays dead.
const DEATHS: usize = 100;

/// A connection whose peer sends a record that cannot be right.
fn dying(server: &Context, client: &Context) -> Outcome<Idle> {
    let mut idle = Idle::between(server, client)?;
    let record = [23, 3, 3, 0, 24].into_iter().chain([7; 24]).collect::<Vec<u8>>();
    assert_eq!(idle.to_server.write(&record), record.len());
    Ok(idle)
}

/// How often one of the good connections would have been closed.
fn false_closes(tls: &'static Tls, task: impl Fn(u64, &mut dyn FnMut())) -> Outcome<usize> {
    let (server, client) = contexts(tls)?;
    let good: Outcome<Vec<Idle>> = (0..9).map(|_| Idle::between(&server, &client)).collect();
    let mut good = good?;
    let mut closes = 0;
    for round in 0..ROUNDS {
        if round % (ROUNDS / DEATHS) == 0 {
            let mut bad = dying(&server, &client)?;
            task(0, &mut || assert_eq!(bad.read(), Class::Ssl));
        }
        for (number, idle) in (1..).zip(&mut good) {
            task(number, &mut || {
                if idle.read() != Class::WantRead {
                    closes += 1;
                    // What a server does that believes it.
                    tls.clear_errors();
                }
            });
        }
    }
    Ok(closes)
}

fn check(tls: &'static Tls) -> Outcome {
    let mended = tls.version().starts_with("OpenSSL 4.");
    assert_eq!(false_closes(tls, |_, work| work())?, if mended { 0 } else { DEATHS });
    tls.clear_errors();

    let since = SystemTime::now();
    let guarded = |number, work: &mut dyn FnMut()| match number {
        0 => run(Task::new("bad").connection(666), work),
        number => run(Task::new("good").connection(number), work),
    };
    assert_eq!(false_closes(tls, guarded)?, 0);
    let ledger = ledger();
    let bad = ledger.label("bad").ok_or("no bad")?;
    assert_eq!((bad.tasks, bad.dirty_tasks), (DEATHS as u64, DEATHS as u64));
    let good = ledger.label("good").ok_or("no good")?;
    assert_eq!((good.tasks, good.dirty_tasks, good.arrivals), (9 * ROUNDS as u64, 0, 0));
    let count = DEATHS as u64;
    let left = told(Expected { label: "bad", reason: "bad record mac", file: ".c", count, since });
    assert_eq!(left.last.connection, Some(666));
    Ok(())
}

crate::on_lines!(check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
