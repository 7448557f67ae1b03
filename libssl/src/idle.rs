//! Threads that have used a library and rest, as most threads of a server do: for measuring what their
//! number costs the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle};

use sslsweep::libcrypto::Library;

/// Stack of a thread that does nothing but be there, in bytes.
const STACK: usize = 64 * 1024;
/// Mappings of a thread: its stack and its signal stack, with a guard page each.
const MAPS_PER_THREAD: usize = 4;
/// Mappings of everything else.
const MAPS_OF_PROCESS: usize = 2000;

/// Why threads could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdleError {
    /// More threads than the process can have.
    #[error(
        "{wanted} threads are asked for, and this system has room for {room} in a process; ask for fewer, \
         or raise it: sysctl vm.max_map_count={}", wanted.saturating_mul(MAPS_PER_THREAD).saturating_add(MAPS_OF_PROCESS)
    )]
    NoRoom {
        /// What was asked for.
        wanted: usize,
        /// What there is room for.
        room: usize,
    },
    /// The system refused one.
    #[error(
        "only {started} of {wanted} threads could be started: {source}; ask for fewer, or raise the \
         limits (ulimit -u, sysctl kernel.threads-max, the container's limit on processes)"
    )]
    Thread {
        /// Those that were started.
        started: usize,
        /// What was asked for.
        wanted: usize,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// One of them panicked, and has printed why.
    #[error("a thread panicked at its first look at the queue")]
    Panicked,
}

/// How many threads the process has room for. std ends the process when a thread that was started
/// finds no room for its signal stack, so this has to be known before.
#[must_use]
pub fn room() -> usize {
    let maps = std::fs::read_to_string("/proc/sys/vm/max_map_count");
    let maps = maps.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(65_530_usize);
    maps.saturating_sub(MAPS_OF_PROCESS) / MAPS_PER_THREAD
}

/// Checks that so many threads have room.
///
/// # Errors
/// [`IdleError::NoRoom`].
pub fn check_room(wanted: usize) -> Result<(), IdleError> {
    let room = room();
    if wanted <= room { Ok(()) } else { Err(IdleError::NoRoom { wanted, room }) }
}

/// Threads that have a state in a library, and rest until this is dropped.
#[derive(Debug)]
pub struct Idle {
    ended: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Idle {
    /// Starts `count` threads; each has its state when this returns.
    ///
    /// # Errors
    /// One of [`IdleError`]; threads that were started have ended then.
    pub fn start(library: &'static Library, count: usize) -> Result<Self, IdleError> {
        check_room(count)?;
        let ended = Arc::new(AtomicBool::new(false));
        let mut idle = Self { ended, threads: Vec::with_capacity(count) };
        let (touched, touches) = mpsc::channel();
        for started in 0..count {
            let (ended, touched) = (Arc::clone(&idle.ended), touched.clone());
            let thread = Builder::new().name("idle".to_owned()).stack_size(STACK);
            let spawned = thread.spawn(move || {
                // A look at the queue gives the thread its state.
                let _ = library.peek();
                // Nobody listens when a later thread could not be started.
                let _ = touched.send(());
                drop(touched);
                while !ended.load(Ordering::Acquire) {
                    std::thread::park();
                }
                library.release();
            });
            let fail = |source| IdleError::Thread { started, wanted: count, source };
            idle.threads.push(spawned.map_err(fail)?);
        }
        drop(touched);
        if touches.iter().count() < count {
            return Err(IdleError::Panicked);
        }
        Ok(idle)
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        for thread in &self.threads {
            thread.thread().unpark();
        }
        for thread in self.threads.drain(..) {
            // A panic has been printed; what is left to do is to end.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_beyond_the_systems_room_are_refused() {
        assert!(check_room(room()).is_ok());
        let refused = check_room(room() + 1).expect_err("one too many");
        assert!(refused.to_string().contains("vm.max_map_count="), "{refused}");
        assert!(check_room(usize::MAX).is_err());
    }
}
