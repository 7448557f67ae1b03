//! A C library on the same thread fails, and the next read of a Rust program on its own connection does.
//!
//! tests/rust_openssl.rs has the same with the `openssl` crate itself.

use std::time::SystemTime;

use sslsweep::hygiene::run;
use sslsweep_libssl::{Outcome as Class, Tls, faults};

use crate::common::{Expected, Idle, Outcome, told};

fn check(tls: &'static Tls) -> Outcome {
    let mut idle = Idle::new(tls)?;
    let send = |idle: &mut Idle| {
        assert_eq!(idle.client.write(b"data"), Class::Done(4));
        idle.pass();
    };

    faults::pem_junk(tls);
    assert_eq!(idle.read(), idle.misread(Class::Ssl));
    // Success is no proof of a clean queue either.
    send(&mut idle);
    assert_eq!(idle.read(), Class::Done(4));
    assert_ne!(tls.peek_error(), 0);
    tls.clear_errors();

    let since = SystemTime::now();
    run("C library", || faults::pem_junk(tls));
    assert_eq!(run("read", || idle.read()), Class::WantRead);
    send(&mut idle);
    assert_eq!(run("read", || idle.read()), Class::Done(4));
    let reason = "no start line";
    told(Expected { label: "C library", reason, file: "pem_lib.c", count: 1, since });
    Ok(())
}

crate::on_lines!(check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
