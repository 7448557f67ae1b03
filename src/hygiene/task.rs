//! What a guard is told about the task it wraps.

use serde::Serialize;

use super::label::Label;

/// What happens to errors that a task left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Policy {
    /// Record them and empty the queue: for the root of a task. A guard that is entered while
    /// another is active on its thread rolls back instead.
    #[default]
    Clear,
    /// Record them and take them back; errors that were there before stay, marks included: for
    /// libraries, whose caller owns the queue.
    RollBack,
    /// Record them and touch nothing.
    Observe,
    /// Record them, empty the queue, and fail: for tests. See [`Guard::finish`](super::Guard::finish).
    Assert,
}

/// When a thread's state is given back to libcrypto.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Release {
    /// At the end of each outermost task. The default where all threads' states share one table
    /// (OpenSSL 1.0.x, old LibreSSL): states of idle threads lengthen its chains as leaked ones do.
    /// Elsewhere it throws the thread's random generators away each time (8 to 17 microseconds on
    /// 3.0).
    EveryTask,
    /// When the thread ends. Always done on 1.0.x; elsewhere libcrypto does it by itself.
    ThreadExit,
    /// When the pool says that the thread rests ([`park`](super::park)).
    Park,
    /// Not at all by the guard. The default on OpenSSL 1.1.0 and later.
    Never,
}

/// One unit of work, as the guard that wraps it knows it.
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Task {
    pub(super) label: Label,
    pub(super) connection: Option<u64>,
    pub(super) policy: Policy,
    pub(super) release: Option<Release>,
}

impl Task {
    /// A task with the default policy and release.
    #[inline]
    pub fn new(label: impl Into<Label>) -> Self {
        Self { label: label.into(), connection: None, policy: Policy::Clear, release: None }
    }

    /// Names the connection that the task works for; the ledger keeps the last one.
    #[inline]
    pub fn connection(mut self, id: u64) -> Self {
        self.connection = Some(id);
        self
    }

    /// Chooses what happens to leftovers.
    #[inline]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Chooses when the thread state is given back, instead of the default of each library's line.
    #[inline]
    pub fn release(mut self, release: Release) -> Self {
        self.release = Some(release);
        self
    }
}

impl From<&'static str> for Task {
    #[inline]
    fn from(label: &'static str) -> Self {
        Self::new(label)
    }
}

impl From<Label> for Task {
    #[inline]
    fn from(label: Label) -> Self {
        Self::new(label)
    }
}
