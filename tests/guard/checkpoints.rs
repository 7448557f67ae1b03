//! Checkpoints in a task, sweeps without one, and a ledger that is reset.

use std::sync::mpsc;
use std::time::SystemTime;

use sslsweep::hygiene::{
    self, Guard, LabelFigures, Policy, Release, Task, ledger, reset, run, sweep, sweep_arrivals,
};
use sslsweep::libcrypto::ThreadState;
use sslsweep::probe::Probe;
use sslsweep_libssl::{Tls, faults};

use crate::common::{Expected, Outcome, told};
use crate::fork::in_a_child;

const REASON: &str = "no start line";

/// Tasks, dirty tasks, leftovers and arrivals of a label.
fn figures(label: &str) -> (u64, u64, u64, u64) {
    let figures = |of: &LabelFigures| (of.tasks, of.dirty_tasks, of.leftovers, of.arrivals);
    ledger().label(label).map_or((0, 0, 0, 0), figures)
}

fn each_error_is_counted_once_and_the_task_too(tls: &'static Tls) -> Outcome {
    let since = SystemTime::now();
    let mut guard = Guard::enter("root");
    assert_eq!(guard.checkpoint(), 0, "nothing yet");
    faults::pem_junk(tls);
    assert_eq!(guard.checkpoint(), 1);
    assert_eq!(tls.library().depth(), 0, "cleared");
    assert_eq!(guard.checkpoint(), 0, "nothing since");
    faults::pem_junk(tls);
    faults::pem_junk(tls);
    assert_eq!(guard.checkpoint(), 2);
    assert_eq!(figures("root"), (0, 1, 3, 0), "it goes on");
    faults::pem_junk(tls);
    assert_eq!(guard.close(), 4, "all that it left");
    assert_eq!(figures("root"), (1, 1, 4, 0));
    told(Expected { label: "root", reason: REASON, file: "pem_lib.c", count: 4, since });

    let mut guard = Guard::enter("clean at its end");
    faults::pem_junk(tls);
    assert_eq!(guard.checkpoint(), 1);
    drop(guard);
    assert_eq!(figures("clean at its end"), (1, 1, 1, 0));
    assert_eq!(ledger().arrivals(), 0);
    Ok(())
}

fn an_inner_task_keeps_what_is_its_callers(tls: &'static Tls) -> Outcome {
    let queue = tls.library();
    for policy in [Policy::Clear, Policy::RollBack] {
        let outer = Guard::enter("outer");
        assert!(queue.raise(128, 1, c"caller", 1));
        assert!(queue.set_mark());
        let mut inner = Guard::enter(Task::new("inner").policy(policy));
        for _ in 0..2 {
            faults::pem_junk(tls);
            queue.set_mark();
            faults::pem_junk(tls);
            assert_eq!(inner.checkpoint(), 2);
            assert_eq!(queue.depth(), 1, "the caller's stays");
        }
        faults::pem_junk(tls);
        assert_eq!(inner.close(), 5);
        assert_eq!(queue.depth(), 1);
        assert!(queue.raise(128, 2, c"caller", 2));
        assert!(queue.pop_to_mark(), "the caller's mark");
        assert_eq!(queue.depth(), 1);
        assert_eq!(outer.close(), 1);
        assert_eq!(queue.depth(), 0);
    }
    assert_eq!(figures("inner"), (2, 2, 10, 0));
    assert_eq!(figures("outer"), (2, 2, 2, 0));
    Ok(())
}

/// A library under an application without guards, and a task that clears what it found.
fn a_root_that_rolls_back(tls: &'static Tls) -> Outcome {
    let queue = tls.library();
    assert!(queue.raise(128, 1, c"caller", 1));
    let mut guard = Guard::enter(Task::new("library").policy(Policy::RollBack));
    faults::pem_junk(tls);
    assert_eq!(guard.checkpoint(), 1);
    assert_eq!(queue.depth(), 1);
    tls.clear_errors();
    assert_eq!(guard.checkpoint(), 0);
    faults::pem_junk(tls);
    assert_eq!(guard.close(), 2);
    assert_eq!(queue.depth(), 0, "what the task cleared stays so");
    assert_eq!(figures("library"), (1, 1, 2, 0));
    Ok(())
}

fn what_is_observed_is_recorded_once(tls: &'static Tls) -> Outcome {
    let watched = |label| Task::new(label).policy(Policy::Observe);
    faults::pem_junk(tls);
    let mut outer = Guard::enter(watched("outer"));
    faults::pem_junk(tls);
    assert_eq!(outer.checkpoint(), 1);
    assert_eq!(outer.checkpoint(), 0);
    let inner = Guard::enter(watched("inner"));
    faults::pem_junk(tls);
    assert_eq!(inner.close(), 1);
    assert_eq!(outer.checkpoint(), 0, "the inner one's is recorded");
    faults::pem_junk(tls);
    assert_eq!(outer.close(), 2);
    assert_eq!(tls.library().depth(), 4, "all stay");
    assert_eq!(figures("outer"), (1, 1, 2, 1));
    assert_eq!(figures("inner"), (1, 1, 1, 0));
    // Nor does a root that clears count what was observed in it.
    run("clears", || {
        assert_eq!(tls.library().depth(), 0);
        run(watched("inner"), || faults::pem_junk(tls));
        faults::pem_junk(tls);
    });
    assert_eq!(figures("clears"), (1, 1, 1, 0));
    assert_eq!(figures("inner"), (2, 2, 2, 0));
    assert_eq!(tls.library().depth(), 0);
    Ok(())
}

/// An outer task that has not been looked at when an inner one observes.
fn what_an_outer_task_left_before_an_observing_one_is_its_own(tls: &'static Tls) -> Outcome {
    let outer = Guard::enter("outer");
    faults::pem_junk(tls);
    run(Task::new("inner").policy(Policy::Observe), || ());
    drop(outer);
    assert_eq!((figures("outer"), figures("inner")), ((1, 1, 1, 0), (1, 0, 0, 0)));
    Ok(())
}

fn assert_fails_for_what_a_checkpoint_has_recorded(tls: &'static Tls) -> Outcome {
    let mut guard = Guard::enter(Task::new("strict").policy(Policy::Assert));
    faults::pem_junk(tls);
    assert_eq!(guard.checkpoint(), 1);
    let dirty = guard.finish().expect_err("it left an error");
    assert_eq!((dirty.earlier, dirty.errors.len()), (1, 0));
    let text = "task `strict` left 1 error(s) in the error queue: 1 before a checkpoint";
    assert_eq!(dirty.to_string(), text);
    // Other policies do not fail.
    let mut guard = Guard::enter("lenient");
    faults::pem_junk(tls);
    assert_eq!(guard.checkpoint(), 1);
    assert!(guard.finish().is_ok());
    Ok(())
}

fn sweeps_of_a_thread_in_no_task(tls: &'static Tls) -> Outcome {
    assert_eq!(sweep("poller"), Some(0));
    faults::pem_junk(tls);
    assert_eq!(sweep("poller"), Some(1));
    assert_eq!(tls.library().depth(), 0);
    faults::pem_junk(tls);
    faults::pem_junk(tls);
    assert_eq!(hygiene::depth(), 2);
    assert_eq!(sweep_arrivals("poller"), Some(2));
    assert_eq!(hygiene::depth(), 0);
    assert_eq!(figures("poller"), (0, 0, 1, 2), "no task is counted");

    let watched = Task::new("watched").policy(Policy::Observe);
    faults::pem_junk(tls);
    assert_eq!((sweep(watched), sweep(watched)), (Some(1), Some(0)));
    assert_eq!(tls.library().depth(), 1);
    // The one that stayed has been recorded.
    run("next", || ());
    assert_eq!(figures("next"), (1, 0, 0, 0));

    run("task", || {
        faults::pem_junk(tls);
        assert_eq!((sweep("poller"), sweep_arrivals("poller")), (None, None), "inside a task");
        assert_eq!(tls.library().depth(), 1);
    });
    assert_eq!(figures("task"), (1, 1, 1, 0), "an outermost task still");
    Ok(())
}

fn a_sweep_gives_the_state_back_where_tasks_do(tls: &'static Tls) -> Outcome {
    let shared = tls.library().shares_states();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            faults::pem_junk(tls);
            assert_eq!(sweep_arrivals("poller"), Some(1));
            assert_ne!(tls.library().state(), ThreadState::Absent, "others go on");
            faults::pem_junk(tls);
            assert_eq!(sweep("poller"), Some(1));
            assert_eq!(tls.library().state() == ThreadState::Absent, shared);
            faults::pem_junk(tls);
            assert_eq!(sweep(Task::new("poller").release(Release::Never)), Some(1));
            assert_ne!(tls.library().state(), ThreadState::Absent);
            // What was there goes without a record, inside a task too.
            run("task", || {
                faults::pem_junk(tls);
                hygiene::release_all();
                assert_eq!(tls.library().state(), ThreadState::Absent);
            });
        });
        thread.join().expect("the thread does not panic");
    });
    assert_eq!(figures("task"), (1, 0, 0, 0));
    Ok(())
}

fn a_reset_starts_anew(tls: &'static Tls) -> Outcome {
    run("before", || faults::pem_junk(tls));
    let probe = Probe::new();
    // A thread that counts before and after, and one that is in a task meanwhile.
    let (go, gone) = mpsc::channel();
    let (done, finished) = mpsc::channel();
    std::thread::scope(|scope| -> Outcome {
        scope.spawn(move || {
            run("live", || faults::pem_junk(tls));
            let guard = Guard::enter("live");
            faults::pem_junk(tls);
            let _ = done.send(());
            let _ = gone.recv();
            drop(guard);
            let _ = done.send(());
        });
        finished.recv()?;
        faults::pem_junk(tls);
        run("late", || ());
        assert_eq!(figures("live"), (1, 1, 1, 0));
        reset();
        let empty = ledger();
        assert_eq!((empty.labels.len(), empty.tasks(), empty.not_told_apart), (0, 0, 0));
        let snapshot = probe.snapshot();
        let growth =
            (snapshot.growth.tasks, snapshot.growth.dirty_tasks, snapshot.growth.leftovers);
        assert_eq!(growth, (2, 1, 1), "growth is counted from the probe's start");
        go.send(())?;
        finished.recv()?;
        Ok(())
    })?;
    assert_eq!(figures("live"), (1, 1, 1, 0), "the task that went on");
    assert!(ledger().label("before").is_none());
    let since = SystemTime::now();
    run("before", || faults::pem_junk(tls));
    told(Expected { label: "before", reason: REASON, file: "pem_lib.c", count: 1, since });
    reset();
    reset();
    assert_eq!(ledger().labels.len(), 0);
    let growth = probe.snapshot().growth;
    assert_eq!((growth.tasks, growth.leftovers), (4, 3));
    Ok(())
}

fn a_child_has_nothing_to_reset(tls: &'static Tls) -> Outcome {
    for _ in 0..3 {
        run("parent", || faults::pem_junk(tls));
    }
    reset();
    run("parent", || ());
    in_a_child(|| {
        run("parent", || faults::pem_junk(tls));
        assert_eq!(figures("parent"), (1, 1, 1, 0));
        reset();
        assert_eq!(figures("parent"), (0, 0, 0, 0));
        run("parent", || ());
        assert_eq!(figures("parent"), (1, 0, 0, 0));
    })?;
    assert_eq!(figures("parent"), (1, 0, 0, 0));
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
    each_error_is_counted_once_and_the_task_too
    an_inner_task_keeps_what_is_its_callers
    a_root_that_rolls_back
    what_is_observed_is_recorded_once
    what_an_outer_task_left_before_an_observing_one_is_its_own
    assert_fails_for_what_a_checkpoint_has_recorded
    sweeps_of_a_thread_in_no_task
    a_sweep_gives_the_state_back_where_tasks_do
    a_reset_starts_anew
    a_child_has_nothing_to_reset
}
