//! Plain closures and threads.

use std::thread::JoinHandle;

use crate::hygiene::{Task, run};

/// Makes a closure that runs `work` as a task: what a pool of your own, or one without an adapter
/// here, can be given as a job.
///
/// ```
/// let job = sslsweep::hygiene::adapters::guarded("resize", || 6 * 7);
/// assert_eq!(std::thread::spawn(job).join().unwrap(), 42);
/// ```
pub fn guarded<R>(task: impl Into<Task>, work: impl FnOnce() -> R) -> impl FnOnce() -> R {
    let task = task.into();
    move || run(task, work)
}

/// As [`std::thread::spawn`], the thread's whole work being one task.
///
/// For threads that serve one connection each; a worker that takes many should guard each one.
///
/// # Panics
/// As [`std::thread::spawn`]: the system cannot make a thread.
pub fn spawn<R: Send + 'static>(
    task: impl Into<Task>,
    work: impl FnOnce() -> R + Send + 'static,
) -> JoinHandle<R> {
    let task = task.into();
    std::thread::spawn(move || run(task, work))
}
