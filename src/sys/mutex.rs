//! A pthread mutex that one function locks and another unlocks, as C libraries ask their applications for.

use std::cell::UnsafeCell;

/// A mutex of the C library, without a guard: whoever locks it sees to its unlocking.
pub struct RawMutex(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: the mutex is touched only by the pthread calls below, which synchronise by themselves.
unsafe impl Sync for RawMutex {}
// SAFETY: it is moved only while nobody has locked it: `lock` borrows it, and it is never destroyed.
unsafe impl Send for RawMutex {}

impl RawMutex {
    /// An unlocked mutex. It must have found its place before it is locked: put it into a static.
    #[must_use]
    pub const fn new() -> Self {
        Self(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER))
    }

    /// Locks it if nobody else has; returns whether it did.
    #[inline]
    pub fn try_lock(&'static self) -> bool {
        // SAFETY: an initialised mutex that is neither moved nor destroyed (it is static).
        unsafe { libc::pthread_mutex_trylock(self.0.get()) == 0 }
    }

    /// Locks it, waiting for whoever has it. The caller must not have it already.
    pub fn lock(&'static self) {
        // SAFETY: as in `try_lock`. Locking twice would block, which is no memory fault.
        unsafe { libc::pthread_mutex_lock(self.0.get()) };
    }

    /// Unlocks it; the calling thread must have locked it.
    #[inline]
    pub fn unlock(&'static self) {
        // SAFETY: as in `try_lock`.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) };
    }
}

impl Default for RawMutex {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_has_it_at_a_time() {
        static MUTEX: RawMutex = RawMutex::new();
        assert!(MUTEX.try_lock());
        assert!(!std::thread::spawn(|| MUTEX.try_lock()).join().unwrap());
        MUTEX.unlock();
        MUTEX.lock();
        MUTEX.unlock();
    }
}
