//! Facts about the calling thread, and a hook for its end.

use std::ffi::c_void;
use std::num::NonZeroUsize;
use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::LocalKey;

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

    /// Its number, for [`Self::from_number`].
    #[must_use]
    pub fn number(self) -> u32 {
        self.0
    }

    /// The key of a number that [`Self::number`] gave.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        Self(number)
    }

    /// A key of ours, which is never deleted.
    fn make(destructor: Option<unsafe extern "C" fn(*mut c_void)>) -> Option<Self> {
        let mut key = 0;
        // SAFETY: `key` is a valid place, and a destructor has the signature asked for; whoever passes one has
        // pinned its object.
        let result = unsafe { libc::pthread_key_create(&raw mut key, destructor) };
        (result == 0).then_some(Self(key))
    }

    fn set(self, value: *const c_void) -> bool {
        // SAFETY: called only on keys of ours, which are never deleted, with what the key's one user reads again.
        unsafe { libc::pthread_setspecific(self.0, value) == 0 }
    }
}

/// A short way to a thread-local of this shared object.
///
/// The way of the compiler goes through the dynamic linker (`__tls_get_addr`), whose tables are cold on a server's
/// path: 40 ns a call, measured in Tomcat. Keys of low numbers lie in the thread's own descriptor, which a look at
/// OpenSSL's state touches anyway. Costs one key for the life of the process; where there is none, the thread-local
/// is asked.
pub struct Shortcut<T: 'static> {
    /// The number of the key plus 1; 0 while there is none.
    key: AtomicU32,
    local: &'static LocalKey<T>,
}

impl<T> Shortcut<T> {
    /// To a thread-local that is made of a constant and has no destructor, so that it is there for as long as its
    /// thread.
    #[must_use]
    pub const fn new(local: &'static LocalKey<T>) -> Self {
        const { assert!(!std::mem::needs_drop::<T>(), "it would be gone before its thread") };
        Self { key: AtomicU32::new(0), local }
    }

    /// As [`LocalKey::with`].
    #[inline(always)]
    pub fn with<R>(&self, work: impl FnOnce(&T) -> R) -> R {
        if let Some(number) = self.key.load(Ordering::Relaxed).checked_sub(1) {
            let value = Key(number).value().cast::<T>();
            // SAFETY: null, or the address that `remember` has put there on this thread: of a thread-local of this
            // type that has no destructor and lives as long as the thread.
            if let Some(value) = unsafe { value.as_ref() } {
                return work(value);
            }
        }
        self.local.with(|value| {
            self.remember(value);
            work(value)
        })
    }

    #[cold]
    #[inline(never)]
    fn remember(&self, value: &T) {
        if self.key.load(Ordering::Relaxed) == 0
            && let Some(key) = Key::make(None)
            && self
                .key
                .compare_exchange(0, key.0 + 1, Ordering::Relaxed, Ordering::Relaxed)
                .is_err()
        {
            // SAFETY: made above, and nobody else has seen it.
            unsafe { libc::pthread_key_delete(key.0) };
        }
        if let Some(number) = self.key.load(Ordering::Relaxed).checked_sub(1) {
            Key(number).set((&raw const *value).cast());
        }
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
        self.key().is_some_and(|key| key.set(std::ptr::without_provenance(1)))
    }

    fn key(&self) -> Option<Key> {
        *self.0.get_or_init(|| {
            super::pin::ourselves();
            Key::make(Some(thread_ends))
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
        key.set(std::ptr::without_provenance(round + 1));
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
    fn a_shortcut_leads_to_the_threads_own() {
        thread_local! {
            static COUNT: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
        }
        static WAY: Shortcut<std::cell::Cell<u32>> = Shortcut::new(&COUNT);
        for _ in 0..3 {
            WAY.with(|count| count.set(count.get() + 1));
        }
        let elsewhere = std::thread::spawn(|| {
            let address = WAY.with(|count| std::ptr::from_ref(count) as usize);
            (
                WAY.with(std::cell::Cell::get),
                COUNT.with(|count| std::ptr::from_ref(count) as usize) == address,
            )
        });
        assert_eq!(elsewhere.join().unwrap(), (0, true));
        assert_eq!((COUNT.get(), WAY.with(std::cell::Cell::get)), (3, 3));
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
