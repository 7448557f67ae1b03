//! When a thread's state is given back: the defaults of each line, and what a task can ask for.

use sslsweep::hygiene::{Policy, Release, Task, guarded_states, park, run};
use sslsweep::libcrypto::ThreadState;
use sslsweep_libssl::{Tls, faults};

use crate::common::Outcome;

fn state_after(tls: &'static Tls, task: Task) -> ThreadState {
    run(task, || faults::pem_junk(tls));
    tls.library().state()
}

const CLEAN: ThreadState = ThreadState::Present { depth: 0 };

/// 1.0.x: states of idle threads lengthen the shared table's chains.
fn given_back_after_each_task(tls: &'static Tls) -> Outcome {
    let task = Task::new("task");
    assert_eq!(state_after(tls, task), ThreadState::Absent);
    assert_eq!(guarded_states(tls.library()), 0);
    for release in [Release::Never, Release::Park, Release::ThreadExit] {
        assert_eq!(state_after(tls, task.release(release)), CLEAN, "{release:?}");
        assert_eq!(guarded_states(tls.library()), 1);
        park();
        assert_eq!(tls.library().state(), ThreadState::Absent);
        assert_eq!(guarded_states(tls.library()), 0);
    }
    // Only at the end of the outermost task.
    run("outer", || {
        run("inner", || faults::pem_junk(tls));
        assert_eq!(tls.library().state(), CLEAN);
    });
    assert_eq!(tls.library().state(), ThreadState::Absent);

    // Whatever a task asks for, the end of its thread gives the state back.
    let alive = || tls.library().census().map(|census| census.alive);
    let before = alive();
    let thread = std::thread::spawn(move || state_after(tls, task.release(Release::Never)));
    assert_eq!(thread.join().map_err(|_| "the thread panicked")?, CLEAN);
    assert_eq!(alive(), before);
    Ok(())
}

/// Since 1.1.0: the end of the thread does it, and before that it costs the random generators.
fn kept_until_the_thread_ends(tls: &'static Tls) -> Outcome {
    let task = Task::new("task");
    assert_eq!(state_after(tls, task), CLEAN);
    assert_eq!(guarded_states(tls.library()), 1);
    for release in [Release::Never, Release::Park, Release::ThreadExit] {
        assert_eq!(state_after(tls, task.release(release)), CLEAN, "{release:?}");
    }
    assert_eq!(state_after(tls, task.release(Release::EveryTask)), ThreadState::Absent);
    assert_eq!(guarded_states(tls.library()), 0);
    assert_eq!(state_after(tls, task), CLEAN);
    park();
    assert_eq!(tls.library().state(), ThreadState::Absent);
    Ok(())
}

/// A guard that looks only, or that leaves the caller's errors, must not throw them away.
fn errors_that_stay_keep_the_state(tls: &'static Tls) -> Outcome {
    let every = Task::new("task").release(Release::EveryTask);
    run(every.policy(Policy::Observe), || faults::pem_junk(tls));
    assert_eq!(tls.library().depth(), 1);
    run(every.policy(Policy::RollBack), || faults::pem_junk(tls));
    assert_eq!(tls.library().depth(), 1);
    run(every, || faults::pem_junk(tls));
    assert_eq!(tls.library().state(), ThreadState::Absent);
    Ok(())
}

fn parking_inside_a_guard_does_nothing(tls: &'static Tls) -> Outcome {
    run("task", || {
        faults::pem_junk(tls);
        park();
        assert_eq!(tls.library().depth(), 1);
    });
    Ok(())
}

/// A thread that has not used the library gets no state by being guarded.
fn a_guard_makes_no_state(tls: &'static Tls) -> Outcome {
    let states = std::thread::spawn(|| {
        let library = tls.library();
        let before = library.state();
        run("task", || ());
        (before, library.state())
    });
    let states = states.join().map_err(|_| "the thread panicked")?;
    assert_eq!(states, (ThreadState::Absent, ThreadState::Absent));
    Ok(())
}

mod default {
    crate::on_lines!(super::given_back_after_each_task: on_1_0_2);
    crate::on_lines!(super::kept_until_the_thread_ends: on_1_1_1 on_3_0 on_3_6 on_4_0);
}

macro_rules! on_all_lines {
    ($($check:ident)+) => { $(
        mod $check {
            crate::on_lines!(super::$check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
        }
    )+ };
}

on_all_lines! {
    errors_that_stay_keep_the_state
    parking_inside_a_guard_does_nothing
    a_guard_makes_no_state
}
