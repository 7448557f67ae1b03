//! Loading one CA file twice succeeds, and leaves an error for each certificate.

use std::path::PathBuf;
use std::time::SystemTime;

use sslsweep::hygiene::{ledger, run};
use sslsweep_libssl::{Context, Outcome as Class, Tls, faults};

use crate::common::{Expected, Idle, Outcome, identity, told};

const CERTIFICATES: usize = 40;

/// A file that goes away with the test.
struct Bundle(PathBuf);

impl Bundle {
    fn new() -> Outcome<Self> {
        let path = std::env::temp_dir().join(format!("sslsweep-bundle-{}", std::process::id()));
        let made: Outcome<Vec<String>> =
            (0..CERTIFICATES).map(|_| Ok(identity()?.certificate)).collect();
        std::fs::write(&path, made?.concat())?;
        Ok(Self(path))
    }
}

impl Drop for Bundle {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn load_twice(tls: &'static Tls, bundle: &Bundle) -> Outcome {
    let mut context = Context::client(tls)?.build();
    assert!(faults::load_verify_locations(&mut context, &bundle.0));
    assert!(faults::load_verify_locations(&mut context, &bundle.0), "it succeeds again");
    Ok(())
}

fn check(tls: &'static Tls) -> Outcome {
    let bundle = Bundle::new()?;
    let mut idle = Idle::new(tls)?;

    load_twice(tls, &bundle)?;
    assert_eq!(idle.read(), Class::Ssl);
    assert_eq!(tls.library().depth(), 15, "the ring keeps the newest of {CERTIFICATES}");
    tls.clear_errors();

    let since = SystemTime::now();
    run("reload", || load_twice(tls, &bundle))?;
    assert_eq!(run("read", || idle.read()), Class::WantRead);
    let reason = "cert already in hash table";
    let left = told(Expected { label: "reload", reason, file: "x509_lu.c", count: 15, since });
    assert!(left.at_least, "older ones were lost: {left:?}");
    let ledger = ledger();
    let reload = ledger.label("reload").ok_or("no reload")?;
    assert!(reload.at_least && reload.dirty_tasks == 1, "{reload:?}");
    assert_eq!(ledger.label("read").map(|read| read.at_least), Some(false));
    Ok(())
}

/// Mended in 1.1.1.
fn leaves_nothing(tls: &'static Tls) -> Outcome {
    let bundle = Bundle::new()?;
    let mut idle = Idle::new(tls)?;
    load_twice(tls, &bundle)?;
    assert_eq!(tls.peek_error(), 0);
    assert_eq!(idle.read(), Class::WantRead);
    run("reload", || load_twice(tls, &bundle))?;
    assert_eq!(ledger().label("reload").map(|reload| reload.dirty_tasks), Some(0));
    Ok(())
}

crate::on_lines!(check: on_1_0_2);
crate::on_lines!(leaves_nothing: on_1_1_1 on_3_0 on_3_6 on_4_0);
