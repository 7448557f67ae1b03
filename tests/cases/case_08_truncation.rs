//! A peer vanishes without close_notify, and another connection of the thread is closed.

use std::time::SystemTime;

use sslsweep::hygiene::{ledger, run};
use sslsweep_libssl::{Outcome as Class, Tls};

use crate::common::{Expected, Idle, Outcome, told};

fn check(tls: &'static Tls) -> Outcome {
    let mut b = Idle::new(tls)?;

    let mut a = Idle::new(tls)?;
    a.to_server.cut();
    assert_eq!(a.read(), Class::Ssl);
    assert_eq!(b.read(), b.misread(Class::Ssl));
    tls.clear_errors();

    let since = SystemTime::now();
    let mut a = Idle::new(tls)?;
    a.to_server.cut();
    assert_eq!(run("read(A)", || a.read()), Class::Ssl);
    assert_eq!(run("read(B)", || b.read()), Class::WantRead);
    let reason = "unexpected eof while reading";
    told(Expected { label: "read(A)", reason, file: ".c", count: 1, since });
    assert_eq!(ledger().label("read(B)").map(|read| read.dirty_tasks), Some(0));
    Ok(())
}

/// An end without close_notify became an error on the queue in 3.0.
fn leaves_nothing(tls: &'static Tls) -> Outcome {
    let (mut a, mut b) = (Idle::new(tls)?, Idle::new(tls)?);
    a.to_server.cut();
    assert_eq!(run("read(A)", || a.read()), Class::Syscall);
    assert_eq!(tls.peek_error(), 0);
    assert_eq!(b.read(), Class::WantRead);
    assert_eq!(ledger().leftovers(), 0);
    Ok(())
}

crate::on_lines!(check: on_3_0 on_3_6 on_4_0);
crate::on_lines!(leaves_nothing: on_1_0_2 on_1_1_1);
