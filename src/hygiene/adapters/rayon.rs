//! rayon: threads of a pool give their states back when they end, and its jobs can be guarded.

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::hygiene::{Task, park, run};

/// Hygiene of a rayon pool.
pub trait RayonHygiene: Sized {
    /// Lets each thread of the pool look for libraries when it starts, so that its first task does
    /// not, and give its states back when it ends.
    ///
    /// Takes the places of the pool's start and exit handlers; set your own through
    /// [`hygienic_with`](Self::hygienic_with) instead.
    #[must_use]
    fn hygienic(self) -> Self {
        self.hygienic_with(|_| {}, |_| {})
    }

    /// As [`hygienic`](Self::hygienic), with handlers of your own: `start` runs as a task of its own,
    /// and `exit` before the states are given back.
    #[must_use]
    fn hygienic_with(
        self,
        start: impl Fn(usize) + Send + Sync + 'static,
        exit: impl Fn(usize) + Send + Sync + 'static,
    ) -> Self;
}

impl<S> RayonHygiene for ThreadPoolBuilder<S> {
    fn hygienic_with(
        self,
        start: impl Fn(usize) + Send + Sync + 'static,
        exit: impl Fn(usize) + Send + Sync + 'static,
    ) -> Self {
        self.start_handler(move |index| run("rayon start", || start(index))).exit_handler(
            move |index| {
                run("rayon exit", || exit(index));
                park();
            },
        )
    }
}

/// Jobs of a rayon pool as tasks.
pub trait RayonTasks {
    /// As `spawn` of the pool, the job being a task. Jobs that it steals while it waits for others
    /// (`join`, `scope`) run inside its guard; give them guards of their own, which nest.
    fn spawn_task(&self, task: impl Into<Task>, job: impl FnOnce() + Send + 'static);
}

impl RayonTasks for ThreadPool {
    fn spawn_task(&self, task: impl Into<Task>, job: impl FnOnce() + Send + 'static) {
        let task = task.into();
        self.spawn(move || run(task, job));
    }
}
