//! threadpool: jobs as tasks.

use threadpool::ThreadPool;

use crate::hygiene::{Task, run};

/// Jobs of a `threadpool::ThreadPool` as tasks.
pub trait ThreadPoolHygiene {
    /// As `execute`, the job being a task.
    fn execute_task(&self, task: impl Into<Task>, job: impl FnOnce() + Send + 'static);
}

impl ThreadPoolHygiene for ThreadPool {
    fn execute_task(&self, task: impl Into<Task>, job: impl FnOnce() + Send + 'static) {
        let task = task.into();
        self.execute(move || run(task, job));
    }
}
