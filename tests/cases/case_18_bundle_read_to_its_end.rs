//! A bundle of certificates or CRLs is read to its end, which is an error to OpenSSL.

use std::time::SystemTime;

use sslsweep::hygiene::{ledger, run};
use sslsweep_libssl::{Outcome as Class, Tls, faults};

use crate::common::{Expected, Idle, Outcome, identity, told};

fn check(tls: &'static Tls) -> Outcome {
    let bundle =
        [identity()?, identity()?, identity()?].map(|identity| identity.certificate).concat();
    let mut idle = Idle::new(tls)?;

    assert_eq!(faults::pem_to_its_end(tls, bundle.as_bytes()), 3, "all is well");
    assert_eq!(idle.read(), idle.misread(Class::Ssl));
    tls.clear_errors();

    let since = SystemTime::now();
    assert_eq!(run("reload", || faults::pem_to_its_end(tls, bundle.as_bytes())), 3);
    assert_eq!(run("read", || idle.read()), Class::WantRead);
    run("decode", || faults::certificate_from_garbage(tls));
    let reason = "no start line";
    let left = told(Expected { label: "reload", reason, file: "pem_lib.c", count: 1, since });
    assert!(left.benign.is_some_and(|why| why.contains("end")), "{left:?}");
    // A failed parse is no end of a file.
    let ledger = ledger();
    let decode = ledger.label("decode").ok_or("no decode")?;
    assert_eq!(decode.dirty_tasks, 1);
    assert!(decode.entries.iter().all(|entry| entry.benign.is_none()), "{decode:?}");
    Ok(())
}

crate::on_lines!(check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
