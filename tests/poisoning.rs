//! The poisoning table: what SSL_get_error says of a healthy connection, or of one that fails for a
//! reason of its own, while an error of another task is queued; and that a guard around that task
//! undoes it.
//!
//! `cargo test --test poisoning -- --nocapture --test-threads 1` prints the table.

mod common;

use common::{Idle, Outcome, contexts};
use sslsweep::hygiene::{ledger, run};
use sslsweep_libssl::Outcome::{self as Class, Ssl, Syscall, WantRead, WantWrite, ZeroReturn};
use sslsweep_libssl::{Connection, Memory, Returned, Tls, faults};

type Fault = fn(&'static Tls);
/// Makes a connection and brings it to the point where the call is to be made.
type Prepare = fn(&'static Tls) -> Outcome<Idle>;
type Call = fn(&mut Connection<Memory>) -> Returned;

struct Row {
    name: &'static str,
    fault: Fault,
    prepare: Prepare,
    call: Call,
}

const READ: Call = |connection| connection.read_raw(&mut [0; 64]);
const WRITE: Call = |connection| connection.write_raw(&[7; 1024]);

const ROWS: [Row; 6] = [
    Row { name: "read, stale PEM", fault: faults::pem_junk, prepare: Idle::new, call: READ },
    Row { name: "read, stale SYS", fault: faults::sys_miss, prepare: Idle::new, call: READ },
    Row { name: "blocked write", fault: faults::pem_junk, prepare: blocked, call: WRITE },
    Row { name: "read at close_notify", fault: faults::pem_junk, prepare: closing, call: READ },
    Row { name: "bad record, stale SYS", fault: faults::sys_miss, prepare: bad_record, call: READ },
    Row { name: "EOF, stale SYS", fault: faults::sys_miss, prepare: ended, call: READ },
];

/// Nothing more can be written.
fn blocked(tls: &'static Tls) -> Outcome<Idle> {
    let (server, client) = contexts(tls)?;
    let mut idle = Idle::with_room(&server, &client, 4096)?;
    for _ in 0..100 {
        match idle.server.write(&[7; 1024]) {
            Class::Done(_) => {}
            Class::WantWrite => return Ok(idle),
            other => return Err(format!("write: {other:?}").into()),
        }
    }
    Err("the wire is never full".into())
}

/// The peer has sent close_notify.
fn closing(tls: &'static Tls) -> Outcome<Idle> {
    let mut idle = Idle::new(tls)?;
    assert_eq!(idle.client.shutdown(), Class::Done(0));
    idle.pass();
    Ok(idle)
}

/// A record has come that cannot be decrypted.
fn bad_record(tls: &'static Tls) -> Outcome<Idle> {
    let mut idle = Idle::new(tls)?;
    let record: Vec<u8> = [23, 3, 3, 0, 24].into_iter().chain([7; 24]).collect();
    assert_eq!(idle.to_server.write(&record), record.len());
    Ok(idle)
}

/// The transport has ended without close_notify.
fn ended(tls: &'static Tls) -> Outcome<Idle> {
    let mut idle = Idle::new(tls)?;
    idle.to_server.cut();
    Ok(idle)
}

/// What the library says of the call after `before` has run on the thread.
fn said(tls: &'static Tls, row: &Row, before: impl FnOnce()) -> Outcome<Class> {
    let mut idle = (row.prepare)(tls)?;
    assert_eq!(tls.peek_error(), 0, "{}: preparing leaves nothing", row.name);
    before();
    let returned = (row.call)(&mut idle.server);
    let class = idle.server.classify(returned);
    tls.clear_errors();
    Ok(class)
}

/// For each row: clean, and stale.
type Table = [(Class, Class); ROWS.len()];

/// OpenSSL up to 3.6. The end of a transport is an error of the protocol since 3.0.
const fn misled(end: Class) -> Table {
    [
        (WantRead, Ssl),
        (WantRead, Syscall),
        (WantWrite, Ssl),
        (ZeroReturn, Ssl),
        (Ssl, Syscall),
        (end, Syscall),
    ]
}

/// 4.0 looks at the queue for fatal results only.
const MENDED_BUT_FATAL: Table = [
    (WantRead, WantRead),
    (WantRead, WantRead),
    (WantWrite, WantWrite),
    (ZeroReturn, ZeroReturn),
    (Ssl, Syscall),
    (Ssl, Syscall),
];

/// AWS-LC clears on entry to each call.
const CLEARS: Table = [
    (WantRead, WantRead),
    (WantRead, WantRead),
    (WantWrite, WantWrite),
    (ZeroReturn, ZeroReturn),
    (Ssl, Ssl),
    (Ssl, Ssl),
];

fn check(tls: &'static Tls, expected: &Table) -> Outcome {
    for (row, &(clean, stale)) in ROWS.iter().zip(expected) {
        let seen = [
            said(tls, row, || ())?,
            said(tls, row, || (row.fault)(tls))?,
            said(tls, row, || run(row.name, || (row.fault)(tls)))?,
        ];
        let [without, with, swept] = seen.map(|class| format!("{class:?}"));
        println!(
            "| {:24} | {:21} | {without:10} | {with:10} | {swept:10} |",
            tls.version(),
            row.name
        );
        assert_eq!(seen, [clean, stale, clean], "{}: clean, stale, swept", row.name);
        assert_eq!(ledger().label(row.name).map(|task| task.dirty_tasks), Some(1));
    }
    Ok(())
}

fn before_3_0(tls: &'static Tls) -> Outcome {
    check(tls, &misled(Syscall))
}

fn from_3_0(tls: &'static Tls) -> Outcome {
    check(tls, &misled(Ssl))
}

fn from_4_0(tls: &'static Tls) -> Outcome {
    check(tls, &MENDED_BUT_FATAL)
}

fn aws_lc(tls: &'static Tls) -> Outcome {
    check(tls, &CLEARS)
}

on_lines!(before_3_0: on_1_0_2 on_1_1_1);
on_lines!(from_3_0: on_3_0 on_3_6);
on_lines!(from_4_0: on_4_0);
on_lines!(aws_lc: on_aws_lc);

mod between_the_call_and_the_question {
    //! An error that is queued after SSL_read and before SSL_get_error poisons AWS-LC too.
    use super::*;

    fn misled(tls: &'static Tls) -> Outcome {
        let (stale, swept) = outcomes(tls)?;
        assert_eq!((stale, swept), (Ssl, WantRead));
        Ok(())
    }

    fn not_misled(tls: &'static Tls) -> Outcome {
        let (stale, swept) = outcomes(tls)?;
        assert_eq!((stale, swept), (WantRead, WantRead));
        Ok(())
    }

    fn outcomes(tls: &'static Tls) -> Outcome<(Class, Class)> {
        let mut idle = Idle::new(tls)?;
        let mut outcome = |between: &dyn Fn()| {
            let returned = READ(&mut idle.server);
            between();
            let class = idle.server.classify(returned);
            tls.clear_errors();
            class
        };
        let stale = outcome(&|| faults::pem_junk(tls));
        Ok((stale, outcome(&|| run("log", || faults::pem_junk(tls)))))
    }

    crate::on_lines!(misled: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_aws_lc);
    crate::on_lines!(not_misled: on_4_0);
}
