//! Pools of others: their jobs are swept, and their threads leave no state behind.
//!
//! One library for the whole file: 1.0.2, where a state that is not given back can be counted.

use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard, PoisonError};

use sslsweep::hygiene::adapters::{RayonHygiene, RayonTasks, ThreadPoolHygiene, guarded, spawn};
use sslsweep::hygiene::{Ledger, ledger, run};
use sslsweep_libssl::{LineFiles, Tls, faults};

/// The count of thread states is of the whole process: one test at a time.
fn alone() -> (MutexGuard<'static, ()>, &'static Tls) {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let tls = LineFiles::named("1.0.2").expect("line 1.0.2").load().expect("its libssl");
    // Loading has given the test's own thread a state.
    tls.library().release();
    (alone, tls)
}

fn states(tls: &Tls) -> usize {
    tls.library().census().expect("a table").alive
}

fn dirty(ledger: &Ledger, label: &str) -> (u64, u64) {
    ledger.label(label).map_or((0, 0), |figures| (figures.tasks, figures.dirty_tasks))
}

#[test]
fn a_closure_is_swept_on_whichever_thread_it_runs() {
    let (_alone, tls) = alone();
    let job = guarded("closure", move || faults::pem_junk(tls));
    let left = std::thread::spawn(move || {
        job();
        tls.library().state().depth()
    });
    assert_eq!(left.join().unwrap(), 0);
    assert_eq!(dirty(&ledger(), "closure"), (1, 1));
    assert_eq!(states(tls), 0);
}

#[test]
fn a_spawned_thread_is_one_task() {
    let (_alone, tls) = alone();
    spawn("connection", move || faults::sys_miss(tls)).join().unwrap();
    assert_eq!(dirty(&ledger(), "connection"), (1, 1));
    assert_eq!(states(tls), 0);
}

#[test]
fn jobs_of_threadpool_are_swept() {
    let (_alone, tls) = alone();
    let pool = threadpool::ThreadPool::new(2);
    for _ in 0..10 {
        pool.execute_task("threadpool job", move || faults::pem_junk(tls));
    }
    pool.join();
    assert_eq!(dirty(&ledger(), "threadpool job"), (10, 10));
    assert_eq!(states(tls), 0, "idle threads of the pool hold no state on 1.0.2");
}

#[test]
fn a_job_that_panics_is_swept_and_the_pool_goes_on() {
    let (_alone, tls) = alone();
    let thread = spawn("panicking thread", move || {
        faults::pem_junk(tls);
        std::panic::panic_any("as before");
    });
    let panic = thread.join().expect_err("it panics");
    assert_eq!(panic.downcast_ref(), Some(&"as before"));
    assert_eq!(dirty(&ledger(), "panicking thread"), (1, 1));
    assert_eq!(states(tls), 0);

    // The pool replaces the threads that its jobs take down.
    let pool = threadpool::ThreadPool::new(2);
    for number in 0..10 {
        pool.execute_task("panicking job", move || {
            faults::pem_junk(tls);
            assert!(number % 2 == 0, "an odd job");
        });
    }
    pool.join();
    assert_eq!(pool.panic_count(), 5);
    assert_eq!(dirty(&ledger(), "panicking job"), (10, 10));
    assert_eq!(states(tls), 0);
}

#[test]
fn jobs_of_rayon_are_swept_and_its_threads_give_back_what_unguarded_jobs_made() {
    let (_alone, tls) = alone();
    let (exited, exits) = channel();
    let exited = Mutex::new(exited);
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(2)
        .hygienic_with(
            |_| {},
            move |index| {
                let exited = exited.lock().unwrap_or_else(PoisonError::into_inner);
                // rayon aborts on a panic here; if nobody waits any more the test has failed.
                let _ = exited.send(index);
            },
        )
        .build()
        .unwrap();
    let (done, dones) = channel();
    for _ in 0..10 {
        let done = done.clone();
        pool.spawn_task("rayon job", move || {
            faults::pem_junk(tls);
            done.send(()).unwrap();
        });
    }
    assert_eq!(dones.iter().take(10).count(), 10);
    // A job without a guard leaves a state and an error in each thread.
    pool.broadcast(|_| faults::pem_junk(tls));
    assert_eq!(states(tls), 2);
    drop(pool);
    assert_eq!(exits.iter().take(2).count(), 2);
    // The handler has run; the thread's own end follows.
    while states(tls) > 0 {
        std::thread::yield_now();
    }
    assert_eq!(dirty(&ledger(), "rayon job"), (10, 10));
}

#[test]
fn the_result_of_a_task_comes_through() {
    let (_alone, tls) = alone();
    let result = run("with a result", || {
        faults::pem_junk(tls);
        42
    });
    assert_eq!(result, 42);
}
