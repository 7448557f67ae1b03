//! What each policy does, and what a guard leaves as it was.

use std::any::Any;
use std::io::Error;
use std::panic::AssertUnwindSafe;
use std::time::SystemTime;

use sslsweep::hygiene::{Guard, Policy, Task, ledger, run};
use sslsweep_libssl::{Tls, faults};

use crate::common::{Expected, Outcome, rsa_identity, told};

fn caught(work: impl FnOnce()) -> Result<(), Box<dyn Any + Send>> {
    std::panic::catch_unwind(AssertUnwindSafe(work))
}

fn a_panic_is_swept_and_recorded_and_goes_on(tls: &'static Tls) -> Outcome {
    let since = SystemTime::now();
    let work = || {
        faults::pem_junk(tls);
        std::panic::panic_any("as before");
    };
    let panic = caught(|| run("panics", work)).expect_err("it goes on");
    assert_eq!(panic.downcast_ref(), Some(&"as before"));
    assert_eq!(tls.peek_error(), 0);
    let (label, reason) = ("panics", "no start line");
    told(Expected { label, reason, file: "pem_lib.c", count: 1, since });

    // The thread's guards nest as before: the next one is an outermost one.
    run("after", || faults::pem_junk(tls));
    assert_eq!(tls.peek_error(), 0);
    // A panicking task of policy Assert panics with its own panic.
    let strict = Task::new("panics strictly").policy(Policy::Assert);
    let panic = caught(|| run(strict, work)).expect_err("it goes on");
    assert_eq!(panic.downcast_ref(), Some(&"as before"));
    assert_eq!(tls.peek_error(), 0);
    Ok(())
}

fn assert_records_clears_and_fails(tls: &'static Tls) -> Outcome {
    let since = SystemTime::now();
    let strict = Task::new("strict").policy(Policy::Assert);
    let panic = caught(|| run(strict, || faults::pem_junk(tls))).expect_err("it is dirty");
    let message = panic.downcast_ref::<String>().ok_or("a panic with a message")?;
    assert!(message.starts_with("task `strict` left 1 error(s) in the error queue: "), "{message}");
    assert!(message.to_lowercase().replace('_', " ").contains("no start line"), "{message}");
    assert_eq!(tls.peek_error(), 0);
    let (label, reason) = ("strict", "no start line");
    told(Expected { label, reason, file: "pem_lib.c", count: 1, since });

    let guard = Guard::enter(strict);
    faults::sys_miss(tls);
    let dirty = guard.finish().expect_err("it is dirty");
    assert_eq!(dirty.label, "strict");
    assert!(!dirty.errors.is_empty());
    assert_eq!(tls.peek_error(), 0);
    // Dropped without being finished it records and clears; a drop does not panic.
    let guard = Guard::enter(strict);
    faults::pem_junk(tls);
    drop(guard);
    assert_eq!(tls.peek_error(), 0);
    run(strict, || ());
    let figures = ledger();
    let figures = figures.label("strict").ok_or("no strict")?;
    assert_eq!((figures.tasks, figures.dirty_tasks), (4, 3));
    Ok(())
}

fn observe_touches_nothing(tls: &'static Tls) -> Outcome {
    let since = SystemTime::now();
    let watched = Task::new("watched").policy(Policy::Observe);
    run(watched, || faults::pem_junk(tls));
    assert_eq!(tls.library().depth(), 1);
    // What has been recorded once is neither an arrival nor a leftover of the next one.
    run(watched, || ());
    run(watched, || faults::pem_junk(tls));
    assert_eq!(tls.library().depth(), 2);
    let reason = "no start line";
    told(Expected { label: "watched", reason, file: "pem_lib.c", count: 2, since });
    let figures = ledger();
    let figures = figures.label("watched").ok_or("no watched")?;
    assert_eq!((figures.tasks, figures.dirty_tasks, figures.arrivals), (3, 2, 0));
    // Nor is it an arrival of a task that clears; what an unguarded piece of code adds is one.
    faults::pem_junk(tls);
    run("clears after watching", || ());
    assert_eq!(tls.library().depth(), 0);
    faults::pem_junk(tls);
    run("clears after watching", || ());
    let figures = ledger();
    let figures = figures.label("clears after watching").ok_or("no such label")?;
    assert_eq!((figures.dirty_tasks, figures.arrivals), (0, 2));
    Ok(())
}

fn errors_at_entry_are_arrivals(tls: &'static Tls) -> Outcome {
    for policy in [Policy::Clear, Policy::Assert, Policy::Observe] {
        let label = match policy {
            Policy::Clear => "clears",
            Policy::Assert => "asserts",
            _ => "observes",
        };
        faults::pem_junk(tls);
        run(Task::new(label).policy(policy), || {
            assert_eq!(tls.peek_error() != 0, policy == Policy::Observe);
        });
        tls.clear_errors();
        let figures = ledger();
        let figures = figures.label(label).ok_or("no task")?;
        assert_eq!(
            (figures.arrivals, figures.leftovers, figures.dirty_tasks),
            (1, 0, 0),
            "{label}"
        );
        assert_eq!((figures.entries[0].arrivals, figures.entries[0].leftovers), (1, 0));
    }
    Ok(())
}

fn of_40_errors_at_least_15_are_known(tls: &'static Tls) -> Outcome {
    let since = SystemTime::now();
    run("flood", || (0..40).for_each(|_| faults::pem_junk(tls)));
    assert_eq!(tls.peek_error(), 0);
    let reason = "no start line";
    let left = told(Expected { label: "flood", reason, file: "pem_lib.c", count: 15, since });
    assert!(left.at_least);
    run("drop", || (0..14).for_each(|_| faults::pem_junk(tls)));
    let left = told(Expected { label: "drop", reason, file: "pem_lib.c", count: 14, since });
    assert!(!left.at_least, "14 are 14");
    Ok(())
}

fn errno_stays(tls: &'static Tls) -> Outcome {
    let errno = || Error::last_os_error().raw_os_error();
    for policy in [Policy::Clear, Policy::RollBack, Policy::Observe, Policy::Assert] {
        // On entering, with errors to record, and on leaving, with others.
        faults::sys_miss(tls);
        set_errno(libc::EPIPE);
        let guard = Guard::enter(Task::new("errno").policy(policy));
        assert_eq!(errno(), Some(libc::EPIPE), "{policy:?}");
        faults::pem_junk(tls);
        set_errno(libc::EINTR);
        drop(guard);
        assert_eq!(errno(), Some(libc::EINTR), "{policy:?}");
        tls.clear_errors();
    }
    Ok(())
}

fn set_errno(errno: i32) {
    // SAFETY: no preconditions.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: the calling thread's own errno.
    unsafe { place.write(errno) };
}

/// RSA decryption raises an error in any case and takes it back in the ring where all was well.
fn an_error_that_was_taken_back_is_none(tls: &'static Tls) -> Outcome {
    let key = rsa_identity()?.key;
    let decrypt = || assert!(faults::rsa_round_trip(tls, key.as_bytes(), false));
    decrypt();
    let taken_back = tls.library().depth();
    assert_eq!(tls.peek_error(), 0, "it is never given out");

    for policy in [Policy::Clear, Policy::RollBack, Policy::Assert] {
        run(Task::new("decrypt").policy(policy), decrypt);
        assert_eq!(tls.library().depth(), 0, "the ring is empty after {policy:?}");
    }
    run(Task::new("decrypt").policy(Policy::Observe), decrypt);
    run("outer", || run("decrypt", decrypt));
    let ledger = ledger();
    assert_eq!(
        (ledger.leftovers(), ledger.dirty_tasks(), ledger.arrivals()),
        (0, 0, 0),
        "{ledger:#?}"
    );
    println!("| {} | taken back, but in the ring: {taken_back} |", tls.version());

    // Where the padding is wrong the error stays (3.2 and later answer with a random text instead).
    run("bad padding", || assert!(!faults::rsa_round_trip(tls, key.as_bytes(), true)));
    let left = ledger_leftovers("bad padding");
    let rejects_implicitly =
        tls.version().starts_with("OpenSSL 3.6") || tls.version().starts_with("OpenSSL 4");
    assert_eq!(left == 0, rejects_implicitly, "{left}");
    tls.clear_errors();
    Ok(())
}

fn ledger_leftovers(label: &str) -> u64 {
    ledger().label(label).map_or(0, |figures| figures.leftovers)
}

/// A guard runs in drop, also while a panic unwinds: a second panic would abort.
fn a_guard_in_a_panic_in_a_guard(tls: &'static Tls) -> Outcome {
    struct Late(&'static Tls);
    impl Drop for Late {
        fn drop(&mut self) {
            run(Task::new("unwinding").policy(Policy::Observe), || faults::pem_junk(self.0));
        }
    }
    let unwound = caught(|| {
        run("outer", || {
            let _late = Late(tls);
            panic!("unwinds");
        })
    });
    assert!(unwound.is_err());
    assert_eq!(ledger_leftovers("unwinding"), 1);
    assert_eq!(tls.peek_error(), 0);
    Ok(())
}

macro_rules! on_all_lines {
    ($($check:ident)+) => { $(
        mod $check {
            crate::on_lines!(super::$check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
        }
    )+ };
}

on_all_lines! {
    a_panic_is_swept_and_recorded_and_goes_on
    assert_records_clears_and_fails
    observe_touches_nothing
    errors_at_entry_are_arrivals
    of_40_errors_at_least_15_are_known
    errno_stays
    an_error_that_was_taken_back_is_none
    a_guard_in_a_panic_in_a_guard
}
