//! What threads leave in a libcrypto when they have ended.

use std::fmt;

use serde::Serialize;

use crate::libcrypto::Library;
use crate::libcrypto::memory::{self, Figures, NotCounted};

/// What a number of threads have left after their end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeftAfterExit {
    /// Threads that did the work and ended.
    pub threads: usize,
    /// Blocks that are alive more than before.
    pub blocks: i64,
    /// Their bytes.
    pub bytes: i64,
    /// Thread states that are alive more than before.
    pub states: i64,
}

/// Lets `threads` threads do `work`, one after another, and counts what they leave in `library`.
///
/// For tests, and for somebody who wants to know whether a release needs help at the end of its
/// threads ([`hygiene::park`](crate::hygiene::park)). One thread works and ends before counting, since
/// what a library makes on first use belongs to no thread. Nothing else may use the library meanwhile.
///
/// # Errors
/// The library's memory is not counted.
///
/// # Panics
/// If `work` does, or the system cannot make a thread.
pub fn left_after_exit(
    library: &Library,
    threads: usize,
    work: impl Fn() + Sync,
) -> Result<LeftAfterExit, NotCounted> {
    let run = || {
        std::thread::scope(|scope| {
            // Joined by itself, which waits for the end of the thread; the scope only waits for the
            // end of the work.
            if let Err(panic) = scope.spawn(&work).join() {
                std::panic::resume_unwind(panic);
            }
        });
    };
    run();
    let before = memory::figures(library)?;
    for _ in 0..threads {
        run();
    }
    let after = memory::figures(library)?;
    let more = |figure: fn(&Figures) -> u64| {
        let (after, before) = (figure(&after), figure(&before));
        i64::try_from(after).unwrap_or(i64::MAX) - i64::try_from(before).unwrap_or(i64::MAX)
    };
    Ok(LeftAfterExit {
        threads,
        blocks: more(|figures| figures.live_blocks),
        bytes: more(|figures| figures.live_bytes),
        states: more(|figures| figures.states),
    })
}

impl fmt::Display for LeftAfterExit {
    #[allow(clippy::cast_precision_loss)]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = |figure: i64| figure as f64 / self.threads.max(1) as f64;
        write!(
            f,
            "left after exit: {:.1} blocks ({:.1} bytes) per thread, over {} threads",
            each(self.blocks),
            each(self.bytes),
            self.threads
        )
    }
}
