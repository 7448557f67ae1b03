//! What the ledger must say.

use std::time::SystemTime;

use sslsweep::hygiene::{Leftover, ledger};
use sslsweep::sys::thread;

/// One kind of leftover, as the ledger must tell it: left by this thread, since `since`.
#[derive(Debug, Clone, Copy)]
pub struct Expected<'a> {
    pub label: &'a str,
    /// Part of the reason, in lower case.
    pub reason: &'a str,
    /// End of the name of the source file that raised it.
    pub file: &'a str,
    pub count: u64,
    pub since: SystemTime,
}

/// Finds it in the ledger, holds it to all that a leftover is to say, and gives it.
#[track_caller]
pub fn told(expected: Expected<'_>) -> Leftover {
    let ledger = ledger();
    let Some(figures) = ledger.label(expected.label) else {
        panic!("no task `{}` in {ledger:#?}", expected.label);
    };
    let plain = |reason: &str| reason.to_lowercase().replace('_', " ");
    let found = figures.entries.iter().find(|entry| plain(&entry.reason).contains(expected.reason));
    let Some(found) = found else { panic!("no {expected:?} in {figures:#?}") };
    let last = &found.last;
    assert_eq!(found.leftovers, expected.count, "{found:#?}");
    assert_eq!((last.thread.as_str(), last.thread_id), (&*thread::name(), thread::id()));
    assert!(found.first >= expected.since && last.time >= found.first, "{found:#?}");
    assert!(last.time <= SystemTime::now(), "{found:#?}");
    assert!(last.file.ends_with(expected.file) && last.line > 0, "{found:#?}");
    assert!(found.library.contains("libcrypto"), "{found:#?}");
    found.clone()
}
