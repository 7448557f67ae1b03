//! What has changed since a probe was made.

use std::collections::HashMap;
use std::time::{Instant, SystemTime};

use serde::Serialize;

use super::snapshot::Reading;
use crate::hygiene::Ledger;
use crate::libcrypto::Library;

/// Source files whose change is named for each library.
const FILES: usize = 5;

/// What guarded tasks have done since the probe's start.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Growth {
    /// The probe's start.
    pub since: SystemTime,
    /// Seconds since then.
    pub seconds: f64,
    /// Tasks that have ended.
    pub tasks: u64,
    /// Those that left errors.
    pub dirty_tasks: u64,
    /// Errors that they left.
    pub leftovers: u64,
    /// Leftovers for each 1,000 tasks; none where there was no task.
    pub leftovers_per_1000_tasks: Option<f64>,
}

/// What has changed in one library since the probe first saw it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LibraryGrowth {
    /// Thread states.
    pub thread_states: Option<i64>,
    /// Thread states for each 1,000 tasks of the process; none where there was no task.
    pub thread_states_per_1000_tasks: Option<f64>,
    /// Bytes that the library has and did not give back.
    pub live_bytes: Option<i64>,
    /// Blocks that they are in.
    pub live_blocks: Option<i64>,
    /// Bytes for each 1,000 tasks.
    pub live_bytes_per_1000_tasks: Option<f64>,
    /// Blocks for each 1,000 tasks.
    pub live_blocks_per_1000_tasks: Option<f64>,
    /// Source files that have most more than then.
    pub files: Vec<FileGrowth>,
    /// Thread states then.
    #[serde(skip)]
    pub(super) states_then: Option<u64>,
}

/// How much more one source file has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct FileGrowth {
    /// The file, as libcrypto names it.
    pub file: String,
    /// Bytes.
    pub bytes: i64,
    /// Blocks.
    pub blocks: i64,
}

/// How things were.
#[derive(Debug)]
pub(super) struct Start {
    time: SystemTime,
    instant: Instant,
    tasks: u64,
    dirty_tasks: u64,
    leftovers: u64,
    /// By the library's address: it lives for ever.
    libraries: HashMap<usize, Reading>,
}

impl Start {
    pub(super) fn new(ledger: &Ledger, libraries: &'static [&'static Library]) -> Self {
        let ever = ledger.ever();
        let guarded = ever.tasks > 0;
        Self {
            time: SystemTime::now(),
            instant: Instant::now(),
            tasks: ever.tasks,
            dirty_tasks: ever.dirty_tasks,
            leftovers: ever.leftovers,
            libraries: libraries
                .iter()
                .map(|library| (address(library), Reading::take(library, guarded)))
                .collect(),
        }
    }

    pub(super) fn growth(&self, ledger: &Ledger) -> Growth {
        let ever = ledger.ever();
        let tasks = ever.tasks.saturating_sub(self.tasks);
        let leftovers = ever.leftovers.saturating_sub(self.leftovers);
        Growth {
            since: self.time,
            seconds: self.instant.elapsed().as_secs_f64(),
            tasks,
            dirty_tasks: ever.dirty_tasks.saturating_sub(self.dirty_tasks),
            leftovers,
            leftovers_per_1000_tasks: per_1000(signed(leftovers), tasks),
        }
    }

    /// What has changed in a library; one that is seen for the first time starts here.
    pub(super) fn library_growth(
        &mut self,
        library: &'static Library,
        now: &Reading,
        tasks: u64,
    ) -> LibraryGrowth {
        let then = self.libraries.entry(address(library)).or_insert_with(|| now.clone());
        let states = difference(now.states.alive, then.states.alive);
        // Two ways of knowing do not compare.
        let states = states.filter(|_| now.states.known_by == then.states.known_by);
        let mut growth = LibraryGrowth {
            thread_states: states,
            thread_states_per_1000_tasks: states.and_then(|states| per_1000(states, tasks)),
            states_then: then.states.alive,
            ..LibraryGrowth::default()
        };
        if let (Ok(now), Ok(then)) = (&now.memory, &then.memory) {
            let bytes = signed(now.live_bytes) - signed(then.live_bytes);
            let blocks = signed(now.live_blocks) - signed(then.live_blocks);
            growth.live_bytes = Some(bytes);
            growth.live_blocks = Some(blocks);
            growth.live_bytes_per_1000_tasks = per_1000(bytes, tasks);
            growth.live_blocks_per_1000_tasks = per_1000(blocks, tasks);
            let before: HashMap<_, _> =
                then.files.iter().map(|file| (file.file.as_str(), file)).collect();
            growth.files = now
                .files
                .iter()
                .map(|file| {
                    let then = before.get(file.file.as_str());
                    FileGrowth {
                        file: file.file.clone(),
                        bytes: signed(file.bytes) - then.map_or(0, |then| signed(then.bytes)),
                        blocks: signed(file.blocks) - then.map_or(0, |then| signed(then.blocks)),
                    }
                })
                .filter(|file| file.bytes > 0)
                .collect();
            growth.files.sort_by_key(|file| std::cmp::Reverse(file.bytes));
            growth.files.truncate(FILES);
        }
        growth
    }
}

fn address(library: &'static Library) -> usize {
    std::ptr::from_ref(library) as usize
}

fn difference(now: Option<u64>, then: Option<u64>) -> Option<i64> {
    Some(signed(now?) - signed(then?))
}

fn signed(figure: u64) -> i64 {
    i64::try_from(figure).unwrap_or(i64::MAX)
}

#[allow(clippy::cast_precision_loss)]
fn per_1000(figure: i64, tasks: u64) -> Option<f64> {
    (tasks > 0).then(|| figure as f64 * 1000.0 / tasks as f64)
}
