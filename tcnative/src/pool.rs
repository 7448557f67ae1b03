//! Pools: what belongs to one goes with it. They are Java's way to say what a context and its configuration
//! belong to; there is no memory behind them.

use std::sync::{Arc, Mutex, PoisonError};

use jni::sys::jlong;

use crate::handle::{Kind, Shared};
use crate::{conf, context};

/// What belongs to a pool.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Owned {
    Pool(jlong),
    Context(jlong),
    Conf(jlong),
}

#[derive(Default)]
pub(crate) struct Pool {
    /// Nothing once the pool is being destroyed.
    owned: Mutex<Option<Vec<Owned>>>,
}

static POOLS: Shared<Pool> = Shared::new(Kind::Pool);

/// Makes a pool inside another one; 0 is the library's own.
pub(crate) fn create(parent: jlong) -> Option<jlong> {
    let parent = if parent == 0 { None } else { Some(POOLS.get(parent)?) };
    let handle = POOLS.add(Arc::new(Pool { owned: Mutex::new(Some(Vec::new())) }))?;
    let belongs = parent.is_none_or(|parent| parent.add(Owned::Pool(handle)));
    if !belongs {
        destroy(handle);
    }
    belongs.then_some(handle)
}

pub(crate) fn get(handle: jlong) -> Option<Arc<Pool>> {
    POOLS.get(handle)
}

/// Destroys a pool and what belongs to it. Does nothing where it is gone already.
pub(crate) fn destroy(handle: jlong) {
    // As a list of its own and not by recursion: pools can be nested deeper than a stack.
    let mut pools = vec![handle];
    while let Some(handle) = pools.pop() {
        let Some(pool) = POOLS.remove(handle) else { continue };
        let owned = pool.owned.lock().unwrap_or_else(PoisonError::into_inner).take();
        for owned in owned.into_iter().flatten() {
            match owned {
                Owned::Pool(handle) => pools.push(handle),
                Owned::Context(handle) => drop(context::CONTEXTS.remove(handle)),
                Owned::Conf(handle) => drop(conf::CONFS.remove(handle)),
            }
        }
    }
}

/// Destroys all pools. What belongs to them is dropped by who calls.
pub(crate) fn clear() {
    POOLS.clear();
}

impl Pool {
    /// Returns whether the pool was still there to take it.
    pub(crate) fn add(&self, owned: Owned) -> bool {
        match &mut *self.owned.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(list) => {
                list.push(owned);
                true
            }
            None => false,
        }
    }
}
