//! The application's side of threading on 1.0.x: a lock for each number, and thread ids.
//!
//! OpenSSL 1.0.x is not thread-safe until its application gives it locks (threads(3) of 1.0.2). What
//! [`install`] gives is what tcnative's `ssl_thread_setup` gave: a pthread mutex for each number,
//! readers excluding each other as writers do, and pthread_self(3) as the thread id. On top, each lock
//! counts its acquisitions and times its waits.
//!
//! Counting is done by the thread that holds the lock, with a plain load and store; a clock is read
//! only by an acquisition that has to wait anyway, one in [`SAMPLED`]. So an acquisition that does not
//! wait costs one try-lock and one addition more than without counting.

use std::ffi::{CStr, c_char, c_int, c_ulong};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::Line;
use super::library::Resolved;
use super::symbols::{LockingCallback, ThreadId};
use crate::sys::dl::Handle;
use crate::sys::mutex::RawMutex;
use crate::sys::{objects, pin};

/// Of so many waits of one lock one is timed; the total is scaled up by it.
pub const SAMPLED: u64 = 4;

/// CRYPTO_LOCK, as against CRYPTO_UNLOCK.
const LOCK: c_int = 1;

/// The locks that were given to a library.
pub struct Locks {
    /// Keeps the library mapped, and knows its calls.
    library: Resolved,
    locks: Vec<Lock>,
}

/// What one lock was used for since it was installed.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct LockFigures {
    /// OpenSSL's name of the lock, such as `CRYPTO_LOCK_ERR`.
    pub name: String,
    /// How often it was taken.
    pub acquisitions: u64,
    /// How often it was found taken by another thread.
    pub contended: u64,
    /// Time spent waiting, in nanoseconds, estimated from one wait in [`SAMPLED`].
    pub wait_ns: u64,
}

/// Why a library was given no locks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockingError {
    /// No libcrypto that can be driven is at the address.
    #[error("no libcrypto is mapped at {0:#x}")]
    NotFound(usize),
    /// Only 1.0.x asks its application for locks.
    #[error("{0} brings its own locks")]
    NotNeeded(String),
    /// Somebody was here first; two sets of locks would exclude nobody.
    #[error("{0} has been given locks already: this must be done before any other user of it")]
    AlreadySet(String),
    /// One library of a process can be given locks here; callbacks carry no argument.
    #[error("locks were given to another library of this process before {0}")]
    OnlyOne(String),
}

/// Tells whether an OpenSSL 1.0.x has been given locks by its application; keeps it mapped.
#[derive(Debug)]
pub struct HasLocks {
    callback: GetLockingCallback,
    handle: Handle,
}

/// CRYPTO_get_locking_callback.
type GetLockingCallback = unsafe extern "C" fn() -> Option<LockingCallback>;

impl HasLocks {
    /// `callback` must be that of the library that `handle` is of.
    pub(super) fn of(callback: GetLockingCallback, handle: Handle) -> Self {
        Self { callback, handle }
    }

    pub(super) fn into_handle(self) -> Handle {
        self.handle
    }

    /// Whether it has some now.
    #[must_use]
    pub fn now(&self) -> bool {
        // SAFETY: takes nothing and reads one pointer of the library's, which the handle keeps mapped.
        unsafe { (self.callback)() }.is_some()
    }
}

static INSTALLED: OnceLock<Locks> = OnceLock::new();

/// Gives the 1.0.x library that has `address` locks and thread ids. Must come before other threads use
/// the library, and before it is bound: without locks it may not be looked at from another thread.
///
/// # Errors
/// The library is not of line 1.0.x, or has locks already.
#[doc(alias = "CRYPTO_set_locking_callback")]
#[doc(alias = "CRYPTO_THREADID_set_callback")]
pub fn install(address: usize) -> Result<&'static Locks, LockingError> {
    let object = objects::loaded().into_iter().find(|object| object.contains(address));
    let library = object.and_then(|object| Resolved::of(&object).ok().flatten());
    let library = library.ok_or(LockingError::NotFound(address))?;
    let symbols = &library.symbols;
    let version = library.version.clone();
    let (Line::V1_0, Some(number), Some(current), Some(set), Some(set_id), Some(_)) = (
        library.line,
        symbols.CRYPTO_num_locks,
        symbols.CRYPTO_get_locking_callback,
        symbols.CRYPTO_set_locking_callback,
        symbols.CRYPTO_THREADID_set_callback,
        symbols.CRYPTO_THREADID_set_numeric,
    ) else {
        return Err(LockingError::NotNeeded(version));
    };
    // SAFETY: no preconditions.
    if unsafe { current() }.is_some() {
        return Err(LockingError::AlreadySet(version));
    }
    pin::ourselves();
    // SAFETY: no preconditions.
    let number = unsafe { number() };
    let locks = Locks { library, locks: (0..number).map(|_| Lock::new()).collect() };
    INSTALLED.set(locks).map_err(|_| LockingError::OnlyOne(version.clone()))?;
    let locks = INSTALLED.get().ok_or(LockingError::OnlyOne(version))?;
    // SAFETY: the function has the callback's signature and stays mapped: it was pinned above.
    unsafe { set_id(Some(thread_id)) };
    // SAFETY: as above; the locks it uses exist from here on and are never dropped.
    unsafe { set(Some(locking)) };
    Ok(locks)
}

impl Locks {
    /// The figures of each lock that was taken, the longest waits first. Looking changes nothing.
    #[must_use]
    pub fn figures(&self) -> Vec<LockFigures> {
        let mut figures: Vec<_> = self
            .locks
            .iter()
            .enumerate()
            .filter(|(_, lock)| lock.acquisitions.load(Ordering::Relaxed) > 0)
            .map(|(number, lock)| LockFigures {
                name: self.name(number),
                acquisitions: lock.acquisitions.load(Ordering::Relaxed),
                contended: lock.contended.load(Ordering::Relaxed),
                wait_ns: lock.sampled_ns.load(Ordering::Relaxed).saturating_mul(SAMPLED),
            })
            .collect();
        figures.sort_by_key(|lock| std::cmp::Reverse((lock.wait_ns, lock.acquisitions)));
        figures
    }

    fn name(&self, number: usize) -> String {
        let name = self.library.symbols.CRYPTO_get_lock_name.map_or(std::ptr::null(), |name| {
            // SAFETY: the number is one of CRYPTO_num_locks; the text is static.
            unsafe { name(c_int::try_from(number).unwrap_or(0)) }
        });
        if name.is_null() {
            return format!("CRYPTO_LOCK_{number}");
        }
        // SAFETY: not null, so a NUL-terminated static text.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        format!("CRYPTO_LOCK_{}", name.to_uppercase())
    }
}

struct Lock {
    mutex: RawMutex,
    acquisitions: AtomicU64,
    contended: AtomicU64,
    sampled_ns: AtomicU64,
}

impl Lock {
    fn new() -> Self {
        Self {
            mutex: RawMutex::new(),
            acquisitions: AtomicU64::new(0),
            contended: AtomicU64::new(0),
            sampled_ns: AtomicU64::new(0),
        }
    }

    fn lock(&'static self) {
        if !self.mutex.try_lock() {
            self.wait();
        }
        add(&self.acquisitions, 1);
    }

    #[cold]
    fn wait(&'static self) {
        // Whoever waits does not hold the lock yet: this counter is shared, and also picks the
        // waits that are timed.
        let timed = self.contended.fetch_add(1, Ordering::Relaxed).is_multiple_of(SAMPLED);
        let begun = timed.then(Instant::now);
        self.mutex.lock();
        if let Some(begun) = begun {
            add(&self.sampled_ns, u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
        }
    }
}

/// Adds to a counter that only the holder of its lock writes to.
fn add(counter: &AtomicU64, more: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

unsafe extern "C" fn locking(mode: c_int, number: c_int, _file: *const c_char, _line: c_int) {
    let lock = INSTALLED.get().and_then(|locks| locks.locks.get(usize::try_from(number).ok()?));
    match lock {
        Some(lock) if mode & LOCK != 0 => lock.lock(),
        Some(lock) => lock.mutex.unlock(),
        // A number beyond CRYPTO_num_locks is a dynamic lock, which has callbacks of its own.
        None => {}
    }
}

unsafe extern "C" fn thread_id(id: *mut ThreadId) {
    let set = INSTALLED.get().and_then(|locks| locks.library.symbols.CRYPTO_THREADID_set_numeric);
    let own = crate::sys::thread::pthread_self();
    if let (Some(set), Some(own)) = (set, own) {
        // SAFETY: `id` is the place that libcrypto passed to be filled.
        unsafe { set(id, own.get() as c_ulong) };
    }
}
