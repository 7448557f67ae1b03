//! A library below the application clears the queue where it should have rolled back.

use std::time::SystemTime;

use sslsweep::hygiene::{Policy, Task, run};
use sslsweep_libssl::{Tls, faults};

use crate::common::{Expected, Outcome, told};

/// The application has an error of its own, marks it, and calls a library. Then it drops what came
/// after its mark. How many errors it has then, and whether the mark was still there.
fn application(tls: &'static Tls, library: impl FnOnce()) -> (usize, bool) {
    let queue = tls.library();
    assert!(queue.raise(128, 5, c"application", 1));
    assert!(queue.set_mark());
    library();
    assert!(queue.raise(128, 6, c"application", 2));
    let marked = queue.pop_to_mark();
    let left = queue.depth();
    tls.clear_errors();
    (left, marked)
}

fn check(tls: &'static Tls) -> Outcome {
    let clear_all = || {
        faults::sys_miss(tls);
        tls.clear_errors();
    };
    assert_eq!(application(tls, clear_all), (0, false), "error and mark are lost");

    let since = SystemTime::now();
    let guarded =
        || run(Task::new("token library").policy(Policy::RollBack), || faults::sys_miss(tls));
    assert_eq!(application(tls, guarded), (1, true));
    // Guards in libraries below libraries.
    let twice = || run(Task::new("middleware").policy(Policy::RollBack), guarded);
    assert_eq!(application(tls, twice), (1, true));
    let reason = "no such file or directory";
    told(Expected { label: "token library", reason, file: "bss_file.c", count: 2, since });
    Ok(())
}

crate::on_lines!(check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
