//! Guards in guards: the outermost clears, inner ones take back what is theirs.

use std::time::SystemTime;

use sslsweep::hygiene::{Guard, Policy, Task, ledger, run};
use sslsweep::libcrypto::FULL;
use sslsweep_libssl::{Tls, faults};

use crate::common::{Expected, Outcome, told};

fn own_error(tls: &'static Tls, reason: i32) {
    assert!(tls.library().raise(128, reason, c"caller", reason));
}

/// Reasons of the caller's errors that are queued now, oldest first.
fn queued(tls: &'static Tls) -> Vec<u32> {
    let mut lines = Vec::new();
    assert!(tls.library().entries(0..FULL, &mut |entry| lines.push(entry.line)));
    lines
}

fn the_outermost_clears_and_inner_ones_roll_back(tls: &'static Tls) -> Outcome {
    let since = SystemTime::now();
    for policy in [Policy::Clear, Policy::RollBack, Policy::Assert] {
        let outer = Guard::enter("outer");
        own_error(tls, 1);
        let inner = Guard::enter(Task::new("inner").policy(policy));
        faults::pem_junk(tls);
        let innermost = Guard::enter("innermost");
        faults::pem_junk(tls);
        drop(innermost);
        assert_eq!(tls.library().depth(), 2, "the inner one's stays");
        assert_eq!(inner.finish().is_err(), policy == Policy::Assert);
        assert_eq!(queued(tls), [1]);
        drop(outer);
        assert_eq!(tls.peek_error(), 0);
    }
    let reason = "no start line";
    told(Expected { label: "inner", reason, file: "pem_lib.c", count: 3, since });
    told(Expected { label: "innermost", reason, file: "pem_lib.c", count: 3, since });
    let ledger = ledger();
    let outer = ledger.label("outer").ok_or("no outer")?;
    assert_eq!((outer.tasks, outer.leftovers, outer.dirty_tasks), (3, 3, 3), "its own only");
    assert_eq!(ledger.arrivals(), 0);
    Ok(())
}

fn an_inner_guard_in_a_clean_queue_leaves_it_clean(tls: &'static Tls) -> Outcome {
    run("outer", || {
        run("inner", || faults::sys_miss(tls));
        assert_eq!(tls.peek_error(), 0);
    });
    let ledger = ledger();
    assert_eq!(ledger.label("outer").map(|outer| outer.dirty_tasks), Some(0));
    assert_eq!(ledger.label("inner").map(|inner| inner.dirty_tasks), Some(1));
    Ok(())
}

/// The caller's marks, on the newest error and on an older one, with several inner guards on top.
fn marks_of_the_caller_stay(tls: &'static Tls) -> Outcome {
    let queue = tls.library();
    for policy in [Policy::Clear, Policy::RollBack] {
        run("outer", || {
            own_error(tls, 1);
            assert!(queue.set_mark());
            own_error(tls, 2);
            assert!(queue.set_mark());
            for _ in 0..2 {
                run(Task::new("inner").policy(policy), || {
                    faults::pem_junk(tls);
                    run(Task::new("innermost").policy(policy), || faults::pem_junk(tls));
                });
            }
            assert_eq!(queued(tls), [1, 2]);
            own_error(tls, 3);
            assert!(queue.pop_to_mark(), "the mark on the newest error");
            assert_eq!(queued(tls), [1, 2]);
            assert!(queue.pop_to_mark(), "the mark on the older one");
            assert_eq!(queued(tls), [1]);
        });
    }
    assert_eq!(ledger().label("outer").map(|outer| outer.leftovers), Some(2));
    Ok(())
}

/// Marks that an inner task sets and forgets do not stop the way back.
fn forgotten_marks_of_the_task_do_not_matter_to_its_caller(tls: &'static Tls) -> Outcome {
    run("outer", || {
        own_error(tls, 1);
        run("inner", || {
            faults::pem_junk(tls);
            tls.library().set_mark();
            faults::pem_junk(tls);
        });
        assert_eq!(queued(tls), [1]);
    });
    Ok(())
}

/// The task itself clears: the caller's errors are gone, and the guard must not invent any.
fn a_task_that_clears(tls: &'static Tls) -> Outcome {
    run("outer", || {
        own_error(tls, 1);
        run("inner", || tls.clear_errors());
        assert_eq!(tls.peek_error(), 0);
    });
    assert_eq!(ledger().leftovers(), 0);
    Ok(())
}

/// An outermost guard of a library, in an application without guards.
fn a_library_rolls_back_under_an_unguarded_caller(tls: &'static Tls) -> Outcome {
    let queue = tls.library();
    own_error(tls, 1);
    assert!(queue.set_mark());
    for _ in 0..3 {
        run(Task::new("library").policy(Policy::RollBack), || faults::sys_miss(tls));
        assert_eq!(queued(tls), [1]);
    }
    assert!(queue.pop_to_mark());
    assert_eq!(queued(tls), [1]);
    tls.clear_errors();
    assert_eq!(ledger().arrivals(), 0);
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
    the_outermost_clears_and_inner_ones_roll_back
    an_inner_guard_in_a_clean_queue_leaves_it_clean
    marks_of_the_caller_stay
    forgotten_marks_of_the_task_do_not_matter_to_its_caller
    a_task_that_clears
    a_library_rolls_back_under_an_unguarded_caller
}
