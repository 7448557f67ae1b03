//! Tasks that wait on a thread's stack, entered and left as Java does it: several are open on a thread while
//! an operation empties the queue.

use std::ffi::c_void;
use std::ptr::null_mut;

use sslsweep::hygiene::{Label, ledger, sweep};
use sslsweep::probe::{Kind, Probe};
use sslsweep_libssl::{Tls, faults};

use crate::common::Outcome;

/// What Java's natives are called with besides their arguments; those on the path of a task do not look at it.
type Ignored = *mut c_void;

// SAFETY: `org.sslsweep.Natives` in the package under test, which take numbers and give numbers.
unsafe extern "system" {
    safe fn Java_org_sslsweep_Natives_enter(
        _: Ignored,
        _: Ignored,
        label: i32,
        options: i32,
        connection: i64,
    ) -> i64;
    safe fn Java_org_sslsweep_Natives_exit(_: Ignored, _: Ignored, token: i64) -> i32;
    safe fn Java_org_sslsweep_Natives_enterRoot(
        _: Ignored,
        _: Ignored,
        label: i32,
        options: i32,
        connection: i64,
    ) -> i32;
    safe fn Java_org_sslsweep_Natives_exitRoot(_: Ignored, _: Ignored) -> i32;
    safe fn Java_org_sslsweep_Natives_checkpoint(
        _: Ignored,
        _: Ignored,
        label: i32,
        options: i32,
    ) -> i32;
    safe fn Java_org_sslsweep_Natives_enterOperation(
        _: Ignored,
        _: Ignored,
        label: i32,
        options: i32,
        connection: i64,
    ) -> i64;
    safe fn Java_org_sslsweep_Natives_threadCleanup(_: Ignored, _: Ignored) -> i32;
}

const CLEAR: i32 = 0;
const ROLL_BACK: i32 = 1;
const OBSERVE: i32 = 2;
const POLICIES: [i32; 3] = [CLEAR, ROLL_BACK, OBSERVE];

/// Numbers are given in the order in which labels are first used, and a test's process is its own.
const ROOT: i32 = 1;
const INNER: i32 = 2;
const WRITE: i32 = 3;

fn labels() {
    for label in ["root", "inner", "write"] {
        let _ = Label::intern(label);
    }
}

fn enter(label: i32, policy: i32) -> i64 {
    let token = Java_org_sslsweep_Natives_enter(null_mut(), null_mut(), label, policy, 0);
    assert!(token > 0, "{token}");
    token
}

fn exit(token: i64) -> i32 {
    Java_org_sslsweep_Natives_exit(null_mut(), null_mut(), token)
}

fn enter_root(policy: i32) {
    let answer = Java_org_sslsweep_Natives_enterRoot(null_mut(), null_mut(), ROOT, policy, 0);
    assert_eq!(answer, 0);
}

fn exit_root() -> i32 {
    Java_org_sslsweep_Natives_exitRoot(null_mut(), null_mut())
}

fn checkpoint(policy: i32) -> i32 {
    Java_org_sslsweep_Natives_checkpoint(null_mut(), null_mut(), WRITE, policy)
}

/// A TLS operation of Tomcat's engine, which pops all that is in the queue before it begins.
fn write(tls: &'static Tls, policy: i32) {
    let token = enter_operation(policy);
    tls.library().drain(&mut |_| {});
    exit_operation(token, 0);
}

fn enter_operation(policy: i32) -> i64 {
    let token = Java_org_sslsweep_Natives_enterOperation(null_mut(), null_mut(), WRITE, policy, 0);
    assert!(token >= 0, "{token}");
    token
}

fn exit_operation(token: i64, left: i32) {
    // 0: it was not entered, since it is directly in a worker's task.
    if token > 0 {
        assert_eq!(exit(token), left);
    }
}

fn leave(tls: &'static Tls, errors: u64) {
    (0..errors).for_each(|_| faults::pem_junk(tls));
}

/// Leftovers of each task so far.
fn leftovers() -> [u64; 3] {
    let ledger = ledger();
    ["root", "inner", "write"]
        .map(|label| ledger.label(label).map_or(0, |figures| figures.leftovers))
}

/// All policies of a root and of the tasks in it, and what they have left.
fn with_policies(mut work: impl FnMut(i32, i32) -> [u64; 3]) {
    labels();
    let mut expected = [0; 3];
    for root in POLICIES {
        for inner in POLICIES {
            let left = work(root, inner);
            expected = std::array::from_fn(|label| expected[label] + left[label]);
            assert_eq!(leftovers(), expected, "root {root}, inner {inner}");
        }
    }
    assert_eq!(ledger().arrivals(), 0);
}

/// The next root must not find what an observing one has left.
fn end_of_task(tls: &'static Tls, left: i32) {
    assert_eq!(exit_root(), left);
    tls.clear_errors();
}

fn an_operation_while_several_tasks_are_open(tls: &'static Tls) -> Outcome {
    with_policies(|root, policy| {
        enter_root(root);
        leave(tls, 2);
        let inner = enter(INNER, policy);
        leave(tls, 1);
        write(tls, root);
        leave(tls, 1);
        assert_eq!(exit(inner), 2);
        end_of_task(tls, 2);
        [2, 2, 0]
    });
    Ok(())
}

/// Directly in a worker's task it is that task's, on a thread of no worker it has a task of its own.
fn what_an_operation_leaves(tls: &'static Tls) -> Outcome {
    labels();
    enter_root(CLEAR);
    leave(tls, 2);
    let token = enter_operation(CLEAR);
    assert_eq!((token, tls.library().depth()), (0, 0));
    leave(tls, 1);
    assert_eq!(exit_root(), 3);
    assert_eq!(leftovers(), [3, 0, 0]);

    let token = enter_operation(CLEAR);
    assert!(token > 0);
    leave(tls, 1);
    exit_operation(token, 1);
    assert_eq!(leftovers(), [3, 0, 1]);

    enter_root(CLEAR);
    let inner = enter(INNER, CLEAR);
    let token = enter_operation(CLEAR);
    leave(tls, 1);
    exit_operation(token, 1);
    assert_eq!(exit(inner), 0);
    assert_eq!(exit_root(), 0);
    assert_eq!(leftovers(), [3, 0, 2]);
    Ok(())
}

/// Three tasks deep, each goes on after the operation.
fn all_go_on_after_an_operation(tls: &'static Tls) -> Outcome {
    with_policies(|root, policy| {
        enter_root(root);
        leave(tls, 1);
        let outer = enter(INNER, policy);
        leave(tls, 1);
        let inner = enter(INNER, root);
        leave(tls, 2);
        for _ in 0..2 {
            write(tls, root);
            leave(tls, 1);
        }
        assert_eq!(exit(inner), 4);
        leave(tls, 1);
        write(tls, policy);
        leave(tls, 1);
        assert_eq!(exit(outer), 3);
        leave(tls, 1);
        write(tls, root);
        leave(tls, 1);
        end_of_task(tls, 3);
        [3, 7, 0]
    });
    Ok(())
}

/// Nobody empties the queue: each error is recorded once all the same.
fn checkpoints_while_several_tasks_are_open(tls: &'static Tls) -> Outcome {
    with_policies(|root, policy| {
        enter_root(root);
        leave(tls, 2);
        let inner = enter(INNER, policy);
        leave(tls, 1);
        assert_eq!(checkpoint(root), 3);
        assert_eq!(checkpoint(root), 0);
        leave(tls, 2);
        assert_eq!(checkpoint(root), 2);
        leave(tls, 1);
        assert_eq!(exit(inner), 4);
        leave(tls, 1);
        assert_eq!(checkpoint(root), 1);
        leave(tls, 1);
        end_of_task(tls, 4);
        [4, 4, 0]
    });
    Ok(())
}

/// Without a checkpoint: an outer task's errors are its own whatever the inner one does about its own.
fn an_inner_task_leaves_the_outer_ones_errors_to_it(tls: &'static Tls) -> Outcome {
    with_policies(|root, policy| {
        enter_root(root);
        leave(tls, 2);
        let inner = enter(INNER, policy);
        assert_eq!(tls.library().depth(), 2, "an enter may be inside a callback of OpenSSL's");
        leave(tls, 1);
        assert_eq!(exit(inner), 1);
        assert_eq!(tls.library().depth(), if policy == OBSERVE { 3 } else { 2 });
        leave(tls, 1);
        end_of_task(tls, 3);
        [3, 1, 0]
    });
    Ok(())
}

fn what_an_operation_has_emptied_hides_nothing(tls: &'static Tls) -> Outcome {
    with_policies(|root, policy| {
        enter_root(root);
        leave(tls, 3);
        write(tls, policy);
        leave(tls, 2);
        write(tls, policy);
        leave(tls, 1);
        end_of_task(tls, 6);
        [6, 0, 0]
    });
    Ok(())
}

/// A library's task in an application that has an error of its own in the queue.
fn a_callers_error_from_before_stays(tls: &'static Tls) -> Outcome {
    labels();
    assert!(tls.library().raise(128, 1, c"caller", 1));
    enter_root(ROLL_BACK);
    leave(tls, 1);
    let inner = enter(INNER, CLEAR);
    leave(tls, 2);
    assert_eq!(checkpoint(CLEAR), 3);
    assert_eq!(tls.library().depth(), 1, "the caller's");
    leave(tls, 1);
    assert_eq!(exit(inner), 3);
    leave(tls, 1);
    assert_eq!(tls.library().depth(), 2);
    assert_eq!(exit_root(), 2);
    assert_eq!(tls.library().depth(), 1, "the caller's");
    assert_eq!(leftovers(), [2, 3, 0]);
    assert_eq!(sweep("caller"), Some(1));
    Ok(())
}

fn a_clean_up_hides_nothing(tls: &'static Tls) -> Outcome {
    with_policies(|root, policy| {
        enter_root(root);
        leave(tls, 2);
        let inner = enter(INNER, policy);
        leave(tls, 1);
        assert!(Java_org_sslsweep_Natives_threadCleanup(null_mut(), null_mut()) >= 0);
        assert_eq!(tls.library().depth(), 0);
        leave(tls, 1);
        assert_eq!(exit(inner), 2);
        leave(tls, 1);
        end_of_task(tls, 3);
        [3, 2, 0]
    });
    Ok(())
}

/// Whatever a thread has called first, hygiene's own thread-locals must outlive the tasks that it does not leave.
fn tasks_that_end_with_a_thread_are_recorded(tls: &'static Tls) -> Outcome {
    labels();
    let first: [fn(); 5] = [
        || assert_eq!(checkpoint(CLEAR), 0),
        || assert!(exit(1) < 0),
        || assert!(exit_root() < 0),
        || assert_eq!(Java_org_sslsweep_Natives_threadCleanup(null_mut(), null_mut()), 0),
        || enter_root(CLEAR),
    ];
    for (position, call) in first.into_iter().enumerate() {
        let thread = std::thread::spawn(move || {
            call();
            enter(INNER, CLEAR);
            leave(tls, 1);
        });
        thread.join().map_err(|_| "the thread panicked")?;
        let figures = ledger();
        assert_eq!((figures.late, figures.unfinished), (0, 0), "{position}");
        assert_eq!(leftovers(), [0, position as u64 + 1, 0]);
    }
    assert_eq!(ledger().not_left, 6);
    let snapshot = Probe::new().snapshot();
    let found: Vec<_> = snapshot.findings_of(Kind::TasksNotLeft).collect();
    assert!(found.len() == 1 && found[0].text.starts_with("6 tasks were never left"), "{found:?}");
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
    an_operation_while_several_tasks_are_open
    all_go_on_after_an_operation
    what_an_operation_leaves
    checkpoints_while_several_tasks_are_open
    an_inner_task_leaves_the_outer_ones_errors_to_it
    what_an_operation_has_emptied_hides_nothing
    a_callers_error_from_before_stays
    a_clean_up_hides_nothing
    tasks_that_end_with_a_thread_are_recorded
}
