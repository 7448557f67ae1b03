//! What a clean task costs: no allocation, no lock, no system call, no call into libcrypto.
//!
//! A target of its own, because its allocator counts.

#[path = "../common/mod.rs"]
mod common;

#[cfg(target_arch = "x86_64")]
mod single_steps;
mod system_calls;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, OnceCell};

use common::Outcome;
use sslsweep::hygiene::{Guard, Label, Policy, Task, ledger, run, sweep, sweep_arrivals};
use sslsweep::libcrypto::ThreadState;
use sslsweep_libssl::{Tls, faults};

struct Counting;

thread_local! {
    /// Allocations of this thread. Without a destructor, so that it can be used at any time.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    ALLOCATIONS.with(|allocations| allocations.set(allocations.get() + 1));
}

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's conditions are those of this call.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations that `work` makes on this thread.
fn allocations(work: impl FnOnce()) -> usize {
    let before = ALLOCATIONS.get();
    work();
    ALLOCATIONS.get() - before
}

/// Guards as a server uses them, around tasks that leave nothing.
fn clean_guards(count: usize, label: Label) {
    for number in 0..count {
        run("text", || ());
        run(Task::new(label).connection(number as u64), || {
            let mut inner = Guard::enter("inner");
            assert_eq!(inner.checkpoint(), 0);
        });
        assert_eq!((sweep(label), sweep_arrivals(label)), (Some(0), Some(0)));
        assert!(Guard::enter(Task::new("strict").policy(Policy::Assert)).finish().is_ok());
        drop(Guard::enter(Task::new("library").policy(Policy::RollBack)));
        drop(Guard::enter(Task::new("watched").policy(Policy::Observe)));
    }
}

/// The thread has a state in libcrypto, and all that is made once has been made.
fn warmed_up(tls: &'static Tls, label: Label) {
    faults::pem_junk(tls);
    tls.clear_errors();
    clean_guards(5000, label);
    assert_eq!(tls.library().state(), ThreadState::Present { depth: 0 });
}

fn no_allocation(tls: &'static Tls) -> Outcome {
    let label = Label::intern("interned");
    warmed_up(tls, label);
    assert_eq!(allocations(|| clean_guards(100_000, label)), 0);
    // A thread without a state in libcrypto.
    let without = std::thread::spawn(move || {
        clean_guards(1, label);
        allocations(|| clean_guards(100_000, label))
    });
    assert_eq!(without.join().map_err(|_| "the thread panicked")?, 0);
    // The control.
    assert_ne!(allocations(|| run("dirty", || faults::pem_junk(tls))), 0);
    Ok(())
}

/// Runs a dirty task when the thread drops its thread-locals, and says what that allocated.
struct AtEnd(&'static Tls);

impl Drop for AtEnd {
    fn drop(&mut self) {
        let tls = self.0;
        assert_eq!(allocations(|| run("known", || faults::pem_junk(tls))), 0);
        assert_eq!(tls.library().depth(), 0);
    }
}

thread_local! {
    static AT_END: OnceCell<AtEnd> = const { OnceCell::new() };
}

/// When the thread's counters are gone even a dirty task allocates nothing.
fn a_thread_that_ends_allocates_nothing(tls: &'static Tls) -> Outcome {
    let thread = std::thread::spawn(move || {
        // Destructors run in the reverse order of first use: this one after the guard's own.
        AT_END.with(|at_end| at_end.set(AtEnd(tls)).ok());
        run("known", || faults::pem_junk(tls));
    });
    thread.join().map_err(|_| "the thread panicked")?;
    assert_eq!(ledger().late, 1);
    Ok(())
}

mod allocations_of_clean_tasks {
    crate::on_lines!(super::no_allocation: on_1_1_1 on_3_0 on_3_6 on_4_0);
}

mod at_a_threads_end {
    crate::on_lines!(super::a_thread_that_ends_allocates_nothing: on_1_0_2 on_1_1_1 on_3_0 on_3_6);
}
