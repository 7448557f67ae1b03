//! Counts the thread states of a process whose libcrypto keeps them in one table (1.0.x).

use serde::Serialize;

use super::layout;
use super::reader::Table;

/// Thread states alive in a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Census {
    /// Thread states, of live threads and of dead ones.
    pub alive: usize,
    /// Their bytes, without texts attached to errors.
    pub bytes: usize,
    /// Errors in all their queues.
    pub queued: usize,
    /// Queues that are not empty.
    pub dirty: usize,
    /// Buckets of the hash table.
    pub buckets: Option<usize>,
    /// States in the fullest bucket: what each ERR call of a thread in that bucket walks, under the
    /// lock.
    pub longest_chain: Option<usize>,
    /// Each state's thread id, as the application's callback gave it, and its queue's depth.
    #[serde(skip)]
    pub threads: Vec<(u64, usize)>,
}

/// Bytes of a hash table's node in 1.0.x.
const NODE: usize = 24;

pub(super) fn take(table: &Table) -> Census {
    let buckets = table.buckets();
    // Room for what may be added meanwhile: nothing is allocated while the lock is held.
    let mut threads = Vec::with_capacity(buckets.items + buckets.items / 8 + 64);
    let mut alive = 0;
    table.each_state(&mut |state| {
        alive += 1;
        if threads.len() < threads.capacity() {
            let (_, id) = state.thread_id();
            threads.push((id, state.depth_elsewhere()));
        }
    });
    let longest_chain = buckets.head.map(|head| {
        let mut chains = vec![0_usize; head.num_nodes as usize];
        for (id, _) in &threads {
            // ERR_STATE's hash: the thread id's value times 13.
            let hash = usize::try_from(*id).unwrap_or(0).wrapping_mul(13);
            if let Some(chain) = chains.get_mut(head.bucket(hash)) {
                *chain += 1;
            }
        }
        chains.into_iter().max().unwrap_or(0)
    });
    Census {
        alive,
        bytes: alive * (layout::V1_0.size + NODE),
        queued: threads.iter().map(|(_, depth)| depth).sum(),
        dirty: threads.iter().filter(|(_, depth)| *depth > 0).count(),
        buckets: buckets.head.map(|head| head.num_nodes as usize),
        longest_chain,
        threads,
    }
}
