//! The functions that a libcrypto calls for its memory.
//!
//! They do what malloc, realloc and free do, and count. They may be called at any time on any thread,
//! under libcrypto's locks, and while the process exits: they call nothing of libcrypto, cannot panic,
//! and leave errno as the C library left it.
//!
//! A libcrypto gives its functions no argument, so each account has functions of its own, which differ
//! in the number of the account.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::account::Account;
use super::blocks::{self, Block, NoMemory};
use crate::libcrypto::MOST;
use crate::libcrypto::symbols::{MallocEx, ReallocEx};
use crate::sys::heap;
use crate::sys::thread::ErrnoKept;

/// An account for each library that could be asked.
pub(super) static ACCOUNTS: [OnceLock<Box<Account>>; MOST] = [const { OnceLock::new() }; MOST];

/// The functions of one account. Those that free need none: the block knows its account.
pub(super) struct Functions {
    pub(super) malloc: MallocEx,
    pub(super) realloc: ReallocEx,
}

macro_rules! functions {
    ($($slot:literal)*) => {
        [$(Functions { malloc: malloc::<$slot>, realloc: realloc::<$slot> }),*]
    };
}

pub(super) static FUNCTIONS: [Functions; MOST] = functions!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);

static STOPPED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// Without a destructor, so that it is there until the thread is gone.
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Whether nothing is counted any more.
#[inline]
pub(super) fn stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

/// In the child of a fork: whoever held a lock of the table is not here to give it back.
pub(super) fn stop() {
    STOPPED.store(true, Ordering::Relaxed);
}

/// How often the calling thread was given memory by functions of ours, in all libraries that are
/// counted together.
#[must_use]
pub fn allocations_here() -> u64 {
    ALLOCATIONS.get()
}

unsafe extern "C" fn malloc<const SLOT: usize>(
    size: usize,
    file: *const c_char,
    _line: c_int,
) -> *mut c_void {
    // As the libraries' own functions do.
    if size == 0 {
        return std::ptr::null_mut();
    }
    let block = heap::malloc(size);
    if !block.is_null() {
        // SAFETY: libcrypto passes the name of its source file, or null.
        unsafe { entered::<SLOT>(block, size, file) };
    }
    block
}

unsafe extern "C" fn realloc<const SLOT: usize>(
    old: *mut c_void,
    size: usize,
    file: *const c_char,
    line: c_int,
) -> *mut c_void {
    if old.is_null() {
        // SAFETY: the caller's own promises.
        return unsafe { malloc::<SLOT>(size, file, line) };
    }
    if size == 0 {
        // SAFETY: as above: `old` is the caller's to give away.
        unsafe { free_1_0(old) };
        return std::ptr::null_mut();
    }
    // Before it can be freed: then another thread can get its address.
    let known = left(old);
    // SAFETY: `old` came from the C library's malloc, which blocks are never anything else than.
    let block = unsafe { heap::realloc(old, size) };
    if !block.is_null() {
        // SAFETY: libcrypto passes the name of its source file, or null.
        unsafe { entered::<SLOT>(block, size, file) };
    } else if let Some(known) = known {
        // It failed, and the old block is as it was.
        enter(old, known);
    }
    block
}

/// free as 1.1.0 and later call it.
pub(super) unsafe extern "C" fn free(block: *mut c_void, _file: *const c_char, _line: c_int) {
    // SAFETY: the caller's own promises.
    unsafe { free_1_0(block) };
}

/// free as 1.0.x calls it.
pub(super) unsafe extern "C" fn free_1_0(block: *mut c_void) {
    if !block.is_null() {
        left(block);
    }
    // SAFETY: the caller gives away a block that came from the C library's malloc, or null.
    unsafe { heap::free(block) };
}

/// Enters a block that libcrypto was given.
///
/// # Safety
/// `file` must be null or a NUL-terminated text.
unsafe fn entered<const SLOT: usize>(block: *mut c_void, size: usize, file: *const c_char) {
    if stopped() {
        return;
    }
    let _errno = ErrnoKept::new();
    ALLOCATIONS.set(ALLOCATIONS.get() + 1);
    let Some(account) = ACCOUNTS[SLOT].get() else { return };
    // SAFETY: the caller's promise.
    let file = (!file.is_null()).then(|| unsafe { CStr::from_ptr(file) });
    account.count_allocation();
    let (file, is_state) = account.classify(file, size);
    enter(block, Block { size, file, slot: SLOT as u8, is_state });
}

fn enter(address: *mut c_void, block: Block) {
    // First, so that whoever frees it on another thread takes away what was added.
    let account = account(block);
    if let Some(account) = account {
        account.add(block);
    }
    match blocks::enter(address as usize, block) {
        Ok(None) => {}
        // Freed by somebody who does not call libcrypto for it, and given out again.
        Ok(Some(gone)) => remove(gone),
        Err(NoMemory) => {
            if let Some(account) = account {
                account.remove(block);
                account.count_untracked();
            }
        }
    }
}

/// Takes a block out that libcrypto gives back. Blocks that are not known were got elsewhere.
fn left(address: *mut c_void) -> Option<Block> {
    if stopped() {
        return None;
    }
    let _errno = ErrnoKept::new();
    let block = blocks::leave(address as usize)?;
    remove(block);
    Some(block)
}

fn remove(block: Block) {
    if let Some(account) = account(block) {
        account.remove(block);
    }
}

fn account(block: Block) -> Option<&'static Account> {
    ACCOUNTS.get(usize::from(block.slot)).and_then(OnceLock::get).map(|account| &**account)
}
