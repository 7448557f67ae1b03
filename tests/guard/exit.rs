//! A process that exits while its threads run guards.

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use sslsweep::hygiene::{Guard, Release, Task, run};
use sslsweep::libcrypto;
use sslsweep_libssl::LineFiles;

use crate::common::{Outcome, line_named, plug_in};

const RUNS: usize = 40;
const THREADS: u32 = 4;

/// Names the line in the process that is to exit.
const EXITS: &str = "SSLSWEEP_TEST_EXITS";

/// Exits under four threads that run one guard after the other, with libcrypto's own exit handler in
/// place, which takes the library down.
///
/// The threads only run guards. What libcrypto itself does when it is called after that is not the
/// guard's doing (CASES.md, 36): their tasks call it on 1.0.2 only, which has no such handler.
fn exit_under_guards(line: &str) -> Outcome {
    // Registered before libcrypto is there, so that it runs after libcrypto's own handler.
    // SAFETY: a function of this program, of the type asked for.
    assert_eq!(unsafe { libc::atexit(last) }, 0);
    let _plug_in = plug_in(&LineFiles::named(line)?)?;
    let library = *libcrypto::libraries().first().ok_or("not found")?;
    let busy = library.shares_states();
    static RUNNING: AtomicU32 = AtomicU32::new(0);
    static GO_ON: AtomicBool = AtomicBool::new(true);
    for _ in 0..THREADS {
        std::thread::spawn(move || {
            let raise = || assert!(library.raise(128, 1, c"exit", 1));
            let task = Task::new("loop").release(Release::Never);
            run(task, raise);
            RUNNING.fetch_add(1, Ordering::Release);
            while GO_ON.load(Ordering::Relaxed) {
                run(task, || {
                    if busy {
                        raise();
                    }
                });
            }
        });
    }
    while RUNNING.load(Ordering::Acquire) < THREADS {
        std::thread::yield_now();
    }
    // The threads are inside guards now and stay there: exit(3) does not wait for them.
    std::process::exit(0);
}

/// What the program does last, when libcrypto has been taken down: its guards must leave it alone.
extern "C" fn last() {
    drop(Guard::enter("last"));
    if !libcrypto::bound().is_empty() {
        // SAFETY: ends the process at once, with a status that the test does not take for success.
        unsafe { libc::_exit(3) }
    }
}

fn check(test: &str, line: &str) -> Outcome {
    if std::env::var_os(EXITS).is_some() {
        return exit_under_guards(line);
    }
    let (_, name) = test.split_once("::").ok_or("a test's name begins with its crate's")?;
    for number in 0..RUNS {
        let output = Command::new(std::env::current_exe()?)
            .args([name, "--exact", "--nocapture"])
            .env(EXITS, "yes")
            .output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "run {number} of {RUNS}: {} {errors}", output.status);
    }
    Ok(())
}

macro_rules! exits {
    ($($test:ident)+) => { $(
        #[test]
        fn $test() -> Outcome {
            let test = concat!(module_path!(), "::", stringify!($test));
            check(test, &line_named(stringify!($test)))
        }
    )+ };
}

exits!(on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
