//! What happens at a thread's end, in the order in which destructors run there.

use std::cell::{Cell, OnceCell};
use std::ffi::c_void;
use std::sync::OnceLock;

use sslsweep::hygiene::{Guard, ledger, run};
use sslsweep_libssl::{Tls, faults};

use crate::common::Outcome;

/// Thread states in the process, where they live in one table.
fn alive(tls: &Tls) -> Option<usize> {
    tls.library().census().map(|census| census.alive)
}

fn on_a_thread(work: impl FnOnce() + Send) {
    // A scope waits for the work only; `join` waits for the thread's destructors too.
    std::thread::scope(|scope| scope.spawn(work).join()).expect("the thread does not panic");
}

fn a_thread_that_ends_inside_a_guard(tls: &'static Tls) -> Outcome {
    run("before", || faults::pem_junk(tls));
    let before = alive(tls);
    on_a_thread(|| {
        let guard = Guard::enter("never ends");
        faults::pem_junk(tls);
        std::mem::forget(guard);
    });
    let figures = ledger();
    assert_eq!(figures.unfinished, 1);
    assert!(figures.label("never ends").is_none(), "a task that has not ended is not counted");
    assert_eq!(alive(tls), before, "its state is gone");
    // The next thread may take its place, its counters and its thread id: it must not inherit more.
    on_a_thread(|| {
        assert_eq!(run("next", || tls.library().depth()), 0);
        run("next", || faults::pem_junk(tls));
        assert_eq!(tls.library().depth(), 0, "an outermost guard again");
    });
    assert_eq!((ledger().unfinished, ledger().arrivals()), (1, 0));
    assert_eq!(alive(tls), before);
    Ok(())
}

/// Runs a dirty task when the thread drops its thread-locals.
struct AtEnd(&'static Tls, &'static str);

impl Drop for AtEnd {
    fn drop(&mut self) {
        let (tls, label) = (self.0, self.1);
        run(label, || faults::pem_junk(tls));
        assert_eq!(tls.library().depth(), 0, "swept, recorded or not");
    }
}

thread_local! {
    static FIRST: OnceCell<AtEnd> = const { OnceCell::new() };
    static SECOND: OnceCell<AtEnd> = const { OnceCell::new() };
}

fn guards_in_destructors_of_thread_locals(tls: &'static Tls) -> Outcome {
    run("before", || faults::pem_junk(tls));
    let before = alive(tls);
    on_a_thread(|| {
        // Destructors run in the reverse order of first use: this one after the guard's own.
        FIRST.with(|at_end| at_end.set(AtEnd(tls, "too late")).ok());
        run("task", || faults::pem_junk(tls));
        SECOND.with(|at_end| at_end.set(AtEnd(tls, "in time")).ok());
    });
    let figures = ledger();
    assert_eq!(figures.label("in time").map(|figures| figures.leftovers), Some(1));
    assert!(figures.label("too late").is_none(), "a thread that ends makes no record");
    assert_eq!((figures.late, figures.unfinished), (1, 0));
    assert_eq!(alive(tls), before);
    Ok(())
}

fn the_first_guard_of_a_thread_in_a_destructor(tls: &'static Tls) -> Outcome {
    run("before", || faults::pem_junk(tls));
    let before = alive(tls);
    on_a_thread(|| {
        FIRST.with(|at_end| at_end.set(AtEnd(tls, "only")).ok());
    });
    let figures = ledger();
    let recorded = figures.label("only").map_or(0, |figures| figures.leftovers);
    assert_eq!(recorded + figures.late, 1, "{figures:#?}");
    assert_eq!(figures.unfinished, 0);
    assert_eq!(alive(tls), before);
    Ok(())
}

static LIBRARY: OnceLock<&Tls> = OnceLock::new();

thread_local! {
    static TOUCHED: Cell<u32> = const { Cell::new(0) };
}

/// An application's destructor that comes to libcrypto once more and leaves an error.
unsafe extern "C" fn touches(_value: *mut c_void) {
    if let Some(tls) = LIBRARY.get() {
        tls.library().raise(128, 1, c"destructor", 1);
        TOUCHED.with(|touched| touched.set(touched.get() + 1));
    }
}

/// A pthread key of the application's.
fn new_key() -> libc::pthread_key_t {
    let mut key = 0;
    // SAFETY: a valid place, and a destructor of the signature asked for, in this program.
    assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, Some(touches)) }, 0);
    key
}

fn arm(key: libc::pthread_key_t) {
    // SAFETY: a key of ours that is never deleted; nobody dereferences the value.
    assert_eq!(unsafe { libc::pthread_setspecific(key, std::ptr::dangling::<c_void>()) }, 0);
}

/// Destructors of pthread keys run in the order of the keys' numbers, which is that of their making
/// more often than not: one key of the application's is made before the guard's, one after.
fn keys_of_the_application_before_and_after(tls: &'static Tls) -> Outcome {
    assert!(LIBRARY.set(tls).is_ok());
    let earlier = new_key();
    run("before", || faults::pem_junk(tls));
    let later = new_key();

    let before = alive(tls).ok_or("a line with a table")?;
    // The control: without a guard the thread's state stays.
    on_a_thread(|| arm(earlier));
    assert_eq!(alive(tls), Some(before + 1), "a dead thread's state");
    // That thread's id, and with it the state, goes to the next thread; this one cleans up.
    let leaked = || alive(tls).unwrap_or(0) > before;
    for _ in 0..100 {
        on_a_thread(|| tls.library().release());
        if !leaked() {
            break;
        }
    }
    assert!(!leaked());

    for keys in [&[earlier][..], &[later], &[earlier, later]] {
        for _ in 0..10 {
            on_a_thread(|| {
                run("task", || faults::pem_junk(tls));
                keys.iter().copied().for_each(arm);
            });
            assert_eq!(alive(tls), Some(before), "{keys:?}");
        }
    }
    assert_eq!(ledger().unarmed, 0);
    Ok(())
}

/// Ten thousand threads, one after the other, each with one dirty task.
fn many_threads_leave_no_state(tls: &'static Tls) -> Outcome {
    run("before", || faults::pem_junk(tls));
    let before = alive(tls);
    for _ in 0..1000 {
        on_a_thread(|| run("task", || faults::pem_junk(tls)));
    }
    assert_eq!(alive(tls), before);
    assert_eq!(ledger().label("task").map(|figures| figures.leftovers), Some(1000));
    assert_eq!(ledger().label("task").map(|figures| figures.tasks), Some(1000));
    Ok(())
}

macro_rules! on_all_lines {
    ($($check:ident)+) => { $(
        mod $check {
            crate::on_lines!(super::$check: on_1_0_2 on_1_1_1 on_3_0 on_3_6);
        }
    )+ };
}

on_all_lines! {
    a_thread_that_ends_inside_a_guard
    guards_in_destructors_of_thread_locals
    the_first_guard_of_a_thread_in_a_destructor
    many_threads_leave_no_state
}

mod keys {
    crate::on_lines!(super::keys_of_the_application_before_and_after: on_1_0_2);
}
