//! Facts about the calling thread, and a hook for its end.

use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::panic::catch_unwind;
use std::sync::OnceLock;

/// How often the C library runs the destructors of a thread's keys while they leave values behind
/// (PTHREAD_DESTRUCTOR_ITERATIONS).
const ROUNDS: usize = 4;

/// A pthread key: a slot that each thread has a pointer of its own in.
///
/// Key number 0 is as good as any other (CASES.md, 38): "no key" is `Option::None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key(libc::pthread_key_t);

impl Key {
    /// All key numbers there can be, whoever made them (PTHREAD_KEYS_MAX: 1,024 on glibc, 128 on musl,
    /// which reads beyond its array when it is asked for more).
    pub fn all() -> impl Iterator<Item = Self> {
        // SAFETY: no preconditions.
        let most = unsafe { libc::sysconf(libc::_SC_THREAD_KEYS_MAX) };
        (0..libc::pthread_key_t::try_from(most).unwrap_or(0)).map(Self)
    }

    /// The calling thread's value, null where it has none or the key does not exist.
    #[inline]
    #[must_use]
    pub fn value(self) -> *mut c_void {
        // SAFETY: the number is below PTHREAD_KEYS_MAX (see `all`), or one that the C library has given
        // out. glibc and musl answer null for one that is not in use.
        unsafe { libc::pthread_getspecific(self.0) }
    }

    fn set(self, value: usize) -> bool {
        // SAFETY: called only on the key of `ExitHook`, which is never deleted; the value is a
        // number that nobody dereferences.
        unsafe { libc::pthread_setspecific(self.0, value as *const c_void) == 0 }
    }
}

/// A function that runs when a thread ends, on that thread.
///
/// One hook for the whole process, made once and never deleted: each start and stop of a server
/// must not cost a key. It runs among the destructors of pthread keys, that is after the destructors
/// of Rust and C++ thread-locals, and again in each of the C library's rounds, because a later
/// destructor may leave again what the hook took away.
#[derive(Debug)]
pub struct ExitHook(OnceLock<Option<Key>>);

static HOOK: OnceLock<fn()> = OnceLock::new();

/// The process's hook.
pub static EXIT_HOOK: ExitHook = ExitHook(OnceLock::new());

impl ExitHook {
    /// Makes the hook run `at_exit` on the calling thread's end; the first function given counts.
    ///
    /// Returns false where the process has no pthread key left. Allocates only for key numbers of
    /// 32 and above, in the C library.
    pub fn arm(&self, at_exit: fn()) -> bool {
        HOOK.get_or_init(|| at_exit);
        self.key().is_some_and(|key| key.set(1))
    }

    fn key(&self) -> Option<Key> {
        *self.0.get_or_init(|| {
            super::pin::ourselves();
            let mut key = 0;
            // SAFETY: `key` is a valid place, and the destructor has the signature asked for; its
            // object was pinned above.
            let result = unsafe { libc::pthread_key_create(&raw mut key, Some(thread_ends)) };
            (result == 0).then_some(Key(key))
        })
    }
}

unsafe extern "C" fn thread_ends(value: *mut c_void) {
    let round = value as usize;
    if let Some(hook) = HOOK.get() {
        // A panic must not unwind into the C library.
        let _ = catch_unwind(hook);
    }
    if round < ROUNDS
        && let Some(key) = EXIT_HOOK.key()
    {
        key.set(round + 1);
    }
}

/// The kernel's number of the calling thread (gettid(2)).
#[must_use]
pub fn id() -> u64 {
    // SAFETY: gettid has no preconditions and cannot fail.
    let id = unsafe { libc::gettid() };
    u64::from(id.unsigned_abs())
}

/// How many threads the process has, where the system tells (/proc/self/task).
#[must_use]
pub fn count() -> Option<u64> {
    let threads = std::fs::read_dir("/proc/self/task").ok()?;
    u64::try_from(threads.count()).ok()
}

/// The calling thread's name as the kernel has it, at most 15 bytes.
#[must_use]
pub fn name() -> String {
    let mut buffer = [0_u8; 16];
    // SAFETY: PR_GET_NAME writes at most 16 bytes, NUL included, to the buffer (prctl(2)).
    let result = unsafe { libc::prctl(libc::PR_GET_NAME, buffer.as_mut_ptr()) };
    if result != 0 {
        return String::new();
    }
    let length = buffer.iter().position(|&byte| byte == 0).unwrap_or(buffer.len());
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

/// The thread's address as pthread_self(3) gives it, which servers used as a thread id for
/// OpenSSL 1.0.x.
#[must_use]
pub fn pthread_self() -> Option<NonZeroUsize> {
    // SAFETY: pthread_self has no preconditions and cannot fail.
    NonZeroUsize::new(unsafe { libc::pthread_self() } as usize)
}

/// Keeps `errno` as it was: code that runs between a server's calls must not change it.
#[derive(Debug)]
pub struct ErrnoKept(i32);

impl ErrnoKept {
    /// Remembers the calling thread's `errno` until dropped.
    #[must_use]
    pub fn new() -> Self {
        // SAFETY: no preconditions.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: the calling thread's own errno, valid for its life.
        Self(unsafe { place.read() })
    }
}

impl Default for ErrnoKept {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for ErrnoKept {
    fn drop(&mut self) {
        // SAFETY: no preconditions.
        let place = unsafe { libc::__errno_location() };
        // SAFETY: the calling thread's own errno, valid for its life.
        unsafe { place.write(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn a_thread_knows_its_name_and_number() {
        let (name, id) = std::thread::Builder::new()
            .name("a-rather-long-thread-name".to_owned())
            .spawn(|| (name(), id()))
            .unwrap()
            .join()
            .unwrap();
        assert_eq!(name, "a-rather-long-t");
        assert_ne!(id, super::id());
    }

    #[test]
    fn the_exit_hook_runs_in_each_round_of_a_threads_end() {
        static RUNS: AtomicUsize = AtomicUsize::new(0);
        std::thread::spawn(|| {
            assert!(EXIT_HOOK.arm(|| {
                RUNS.fetch_add(1, Ordering::Relaxed);
            }));
        })
        .join()
        .unwrap();
        // The thread is gone for `join`, so its destructors have run.
        assert_eq!(RUNS.load(Ordering::Relaxed), ROUNDS);
    }

    #[test]
    fn errno_is_put_back() {
        let kept = ErrnoKept::new();
        let before = std::io::Error::last_os_error().raw_os_error();
        assert!(std::fs::File::open("/no/such/file").is_err());
        drop(kept);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), before);
    }
}
