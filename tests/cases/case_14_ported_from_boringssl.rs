//! A program that is well on BoringSSL misreads its connections when it is ported to OpenSSL.

use std::time::SystemTime;

use sslsweep::hygiene::{ledger, run};
use sslsweep::libcrypto::Line;
use sslsweep_libssl::{Outcome as Class, Tls, faults};

use crate::common::{Expected, Idle, Outcome, told};

/// The same steps on each library.
fn trace(tls: &'static Tls) -> Outcome<(Class, Class)> {
    let mut idle = Idle::new(tls)?;
    faults::pem_junk(tls);
    let read = idle.read();
    tls.clear_errors();
    // The error arrives after the read, before the question what its result means.
    let returned = idle.server.read_raw(&mut [0; 16]);
    faults::pem_junk(tls);
    let late = idle.server.classify(returned);
    tls.clear_errors();
    Ok((read, late))
}

fn check(tls: &'static Tls) -> Outcome {
    let library = tls.library();
    let clears_by_itself = library.line() == Line::AwsLc;
    let (read, late) = trace(tls)?;
    if clears_by_itself {
        // It clears on entry to SSL_read, which does not help against what comes after.
        assert_eq!((read, late), (Class::WantRead, Class::Ssl));
        assert!(library.line().needs().contains("clear the queue themselves"));
    } else {
        assert_eq!((read, late), (Class::Ssl, Class::Ssl));
        assert!(library.line().needs().contains("sweep after each task"));
    }

    let since = SystemTime::now();
    let mut idle = Idle::new(tls)?;
    run("handshake", || faults::pem_junk(tls));
    assert_eq!(run("read", || idle.read()), Class::WantRead);
    let label = "handshake";
    told(Expected { label, reason: "no start line", file: "pem_lib.c", count: 1, since });
    assert_eq!(ledger().label("read").map(|read| read.dirty_tasks), Some(0));
    Ok(())
}

crate::on_lines!(check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_aws_lc);
