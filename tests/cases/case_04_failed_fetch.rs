//! A digest that a policy has made unavailable cannot be fetched, and an https download fails for it.

use std::time::SystemTime;

use sslsweep::hygiene::{ledger, run};
use sslsweep_libssl::{Outcome as Class, Tls, faults};

use crate::common::{Expected, Idle, Outcome, told};

fn check(tls: &'static Tls) -> Outcome {
    let mut download = Idle::new(tls)?;

    assert!(faults::fetch_unknown_digest(tls));
    assert_eq!(download.read(), download.misread(Class::Ssl));
    tls.clear_errors();

    let since = SystemTime::now();
    assert!(run("check a package", || faults::fetch_unknown_digest(tls)));
    assert_eq!(run("download", || download.read()), Class::WantRead);
    let left = told(Expected {
        label: "check a package",
        reason: "unsupported",
        file: "evp_fetch.c",
        count: 1,
        since,
    });
    // Which algorithm, and by which function: the connection is not to blame.
    assert!(left.last.data.is_some_and(|data| data.contains("NO-SUCH-DIGEST")));
    assert!(left.last.function.is_some_and(|function| function.contains("fetch")));
    assert_eq!(ledger().label("download").map(|download| download.dirty_tasks), Some(0));
    Ok(())
}

/// Before 3.0 a digest was looked up in a table, and a miss left nothing.
fn leaves_nothing(tls: &'static Tls) -> Outcome {
    assert!(!faults::fetch_unknown_digest(tls), "this release has no fetching");
    let mut download = Idle::new(tls)?;
    faults::look_up_unknown_digest(tls);
    assert_eq!(tls.peek_error(), 0);
    assert_eq!(download.read(), Class::WantRead);
    run("check a package", || faults::look_up_unknown_digest(tls));
    assert_eq!(ledger().leftovers(), 0);
    Ok(())
}

crate::on_lines!(check: on_3_0 on_3_6 on_4_0);
crate::on_lines!(leaves_nothing: on_1_0_2 on_1_1_1);
