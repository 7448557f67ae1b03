//! fork: the child's guards work and count from nothing; the parent notices nothing.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use sslsweep::hygiene::{Guard, Label, ledger, run};
use sslsweep_libssl::{Tls, faults};

use crate::common::Outcome;

/// A child that takes so many seconds hangs.
const HANGS: u32 = 20;

/// Runs `work` in a child and waits for it.
pub(crate) fn in_a_child(work: impl FnOnce()) -> Outcome {
    // SAFETY: the child uses the heap, which glibc keeps usable in it, and what is under test.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error().into()),
        0 => {
            // SAFETY: takes no pointer; without a handler the signal ends the child.
            unsafe { libc::alarm(HANGS) };
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            // SAFETY: ends the child at once: it must not go on with the parent's tests.
            unsafe { libc::_exit(i32::from(result.is_err())) }
        }
        child => {
            let mut status = 0;
            // SAFETY: a valid place for the status of a child of ours.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
            if status == 0 {
                Ok(())
            } else {
                Err(format!("the child ended with {status:#x}").into())
            }
        }
    }
}

fn the_child_counts_from_nothing(tls: &'static Tls) -> Outcome {
    run("parent", || faults::pem_junk(tls));
    let outer = Guard::enter("forks");
    in_a_child(|| {
        assert_eq!((ledger().tasks(), ledger().leftovers()), (0, 0));
        run("child", || faults::pem_junk(tls));
        assert_eq!(tls.peek_error(), 0);
        let figures = ledger();
        let child = figures.label("child").expect("a task");
        assert_eq!((child.tasks, child.dirty_tasks, child.leftovers), (1, 1, 1));
        assert_eq!(child.entries[0].last.thread_id, u64::from(std::process::id()));
        assert!(figures.label("parent").is_none());
        // Threads of the child, new labels, and forks of the child.
        let thread =
            std::thread::spawn(move || run(Label::intern("new"), || faults::pem_junk(tls)));
        thread.join().expect("no panic");
        assert_eq!(ledger().leftovers(), 2);
        in_a_child(|| {
            assert_eq!(ledger().tasks(), 0);
            run("grandchild", || faults::pem_junk(tls));
            assert_eq!(ledger().leftovers(), 1);
        })
        .expect("the grandchild is well");
        assert_eq!(ledger().leftovers(), 2);
    })?;
    drop(outer);
    let ledger = ledger();
    assert_eq!(ledger.label("parent").map(|parent| parent.leftovers), Some(1));
    assert_eq!(ledger.label("forks").map(|forks| (forks.tasks, forks.dirty_tasks)), Some((1, 0)));
    assert!(ledger.label("child").is_none() && ledger.label("new").is_none());
    Ok(())
}

/// A guard that is active when its thread forks ends in both processes.
fn a_guard_over_a_fork(tls: &'static Tls) -> Outcome {
    let guard = Guard::enter("over");
    faults::pem_junk(tls);
    let mut guard = Some(guard);
    in_a_child(|| {
        drop(guard.take());
        assert_eq!(tls.peek_error(), 0);
        let figures = ledger();
        assert_eq!(figures.label("over").map(|over| (over.tasks, over.leftovers)), Some((1, 1)));
        run("next", || faults::pem_junk(tls));
        assert_eq!(tls.peek_error(), 0, "an outermost guard");
    })?;
    assert_eq!(tls.library().depth(), 1);
    drop(guard);
    assert_eq!(ledger().label("over").map(|over| (over.tasks, over.leftovers)), Some((1, 1)));
    Ok(())
}

/// More forks of forks than there are ledgers: the deepest share one.
fn forks_of_forks(tls: &'static Tls) -> Outcome {
    fn descend(tls: &'static Tls, left: u32) {
        run("descends", || faults::pem_junk(tls));
        assert!(ledger().leftovers() >= 1);
        if left > 0 {
            in_a_child(|| descend(tls, left - 1)).expect("the child is well");
        }
    }
    descend(tls, 12);
    assert_eq!(ledger().leftovers(), 1);
    Ok(())
}

/// Forks over and over while `busy` runs in two other threads.
fn under(busy: impl Fn() + Sync, in_child: impl Fn()) -> Outcome {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    busy();
                }
            });
        }
        let result = (0..500).try_for_each(|_| in_a_child(&in_child));
        stop.store(true, Ordering::Relaxed);
        result
    })
}

/// Leaves an error without any lock of libcrypto's: a child in which another thread held one of those
/// at the time of the fork hangs in libcrypto itself, guard or no guard.
fn raise(tls: &'static Tls) {
    assert!(tls.library().raise(128, 1, c"fork", 1));
}

fn a_dirty_task_in_a_child(tls: &'static Tls) {
    run("child", || raise(tls));
    assert_eq!(tls.library().depth(), 0);
    assert_eq!(ledger().leftovers(), 1);
}

/// Other threads hold the ledger's lock at the moment of the fork, as likely as not.
fn a_busy_ledger(tls: &'static Tls) -> Outcome {
    for number in 0..200 {
        run(Label::intern(&format!("label {number}")), || raise(tls));
    }
    under(|| assert!(ledger().leftovers() >= 200), || a_dirty_task_in_a_child(tls))
}

/// Other threads are in the middle of dirty tasks.
///
/// Not on 1.0.2, whose every ERR call takes a lock.
fn busy_tasks(tls: &'static Tls) -> Outcome {
    run("before", || raise(tls));
    under(|| run("busy", || raise(tls)), || a_dirty_task_in_a_child(tls))
}

/// Threads begin and end meanwhile, and the one that forks has had no guard yet.
fn threads_that_come_and_go(tls: &'static Tls) -> Outcome {
    // Its state in libcrypto it has, since making one takes a lock on 3.0.
    raise(tls);
    tls.clear_errors();
    under(
        || {
            let thread = std::thread::spawn(|| run("short", || ()));
            assert!(thread.join().is_ok());
        },
        || a_dirty_task_in_a_child(tls),
    )
}

/// New labels are being made in the other threads: the same ones that the child makes.
fn labels_in_the_making(tls: &'static Tls) -> Outcome {
    raise(tls);
    tls.clear_errors();
    let next = AtomicUsize::new(0);
    under(
        || {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let _ = Label::intern(&format!("label {number}"));
        },
        || {
            let number = next.load(Ordering::Relaxed);
            let near = number.saturating_sub(4)..number + 4;
            for number in near {
                let _ = Label::intern(&format!("label {number}"));
            }
            a_dirty_task_in_a_child(tls);
        },
    )
}

macro_rules! on_all_lines {
    ($($check:ident: $($line:ident)+;)+) => { $(
        mod $check {
            crate::on_lines!(super::$check: $($line)+);
        }
    )+ };
}

on_all_lines! {
    the_child_counts_from_nothing: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0;
    a_guard_over_a_fork: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0;
    forks_of_forks: on_1_0_2 on_1_1_1 on_3_0;
    a_busy_ledger: on_1_0_2 on_1_1_1 on_3_0;
    busy_tasks: on_1_1_1 on_3_0;
    threads_that_come_and_go: on_1_1_1 on_3_0;
    labels_in_the_making: on_1_1_1 on_3_0;
}
