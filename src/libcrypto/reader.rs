//! Finds the calling thread's ERR_STATE without allocating and without changing anything.

use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use super::layout::{self, Layout, State};
use super::symbols::{Lhash, Symbols, ThreadId};
use crate::sys::thread::Key;

/// How a library's thread states are found.
#[derive(Debug)]
pub(super) enum Reader {
    /// 1.0.x: in one table of the whole process, behind one lock.
    Table(Table),
    /// 1.1.0 and later: behind a pthread key.
    Key(KeyPath),
    /// Not at all: the public interface is asked instead.
    PublicApi(String),
}

/// From a pthread key to the state.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyPath {
    pub(super) key: Key,
    pub(super) layout: &'static Layout,
    pub(super) step: Step,
}

/// What the key's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The state itself (1.1.0 to 3.4).
    Direct,
    /// A table whose entry 3 is a sparse array, whose first leaf is the state (3.5 and later).
    SparseArray,
}

/// Byte offset of entry 3 in the table behind the key.
pub(super) const SPARSE_ENTRY: usize = 3 * size_of::<usize>();
/// Byte offset of the nodes' address in a sparse array `{int levels; top; nelem; nodes}`.
pub(super) const SPARSE_NODES: usize = 3 * size_of::<usize>();

/// What was found.
pub(super) enum Found {
    /// The thread has no state.
    Absent,
    /// The thread's own state.
    State(State),
    /// The structure on the way has a shape that was not seen at calibration: ask the public
    /// interface.
    Unreadable,
}

impl KeyPath {
    #[inline]
    pub(super) fn find(self) -> Found {
        let value = self.key.value();
        if is_none(value) {
            return Found::Absent;
        }
        let address = match self.step {
            Step::Direct => value.cast_const(),
            Step::SparseArray => match sparse_leaf(value) {
                Leaf::State(state) => state,
                Leaf::Absent => return Found::Absent,
                Leaf::Unreadable => return Found::Unreadable,
            },
        };
        // SAFETY: calibration has shown that this path ends at an ERR_STATE of this layout; the key
        // gives the calling thread's own, which only this thread writes to and frees.
        Found::State(unsafe { State::at(address, self.layout) })
    }
}

/// Whether a key's value stands for no state: null, or -1 while libcrypto is making the state, as a
/// memory function that it calls meanwhile may find it.
#[inline]
pub(super) fn is_none(value: *mut c_void) -> bool {
    (value as usize).wrapping_add(1) <= 1
}

/// The end of the way through a sparse array.
pub(super) enum Leaf {
    /// The thread's state.
    State(*const c_void),
    /// The thread has none.
    Absent,
    /// The array has another shape than at calibration.
    Unreadable,
}

/// Follows a key's value of 3.5 and later, which must be a thread's table, to that thread's state.
#[inline]
pub(super) fn sparse_leaf(table: *mut c_void) -> Leaf {
    // SAFETY: the key's value is the thread's table (shown at calibration), which has more than
    // four entries; it is the thread's own.
    let entry = unsafe { table.byte_add(SPARSE_ENTRY) };
    // SAFETY: as above: a pointer to a sparse array, or null.
    let array = unsafe { entry.cast::<*const c_void>().read() };
    if array.is_null() {
        return Leaf::Absent;
    }
    // SAFETY: a sparse array starts with its number of levels.
    if unsafe { array.cast::<c_int>().read() } != 1 {
        return Leaf::Unreadable;
    }
    // SAFETY: the address of the nodes is the structure's fourth word.
    let nodes = unsafe { array.byte_add(SPARSE_NODES) };
    // SAFETY: as above: a pointer to at least one node (or null while the array is empty).
    let nodes = unsafe { nodes.cast::<*const *const c_void>().read() };
    if nodes.is_null() {
        return Leaf::Absent;
    }
    // SAFETY: a level has 16 nodes; the first is the leaf of the default library context.
    let leaf = unsafe { nodes.read() };
    if leaf.is_null() { Leaf::Absent } else { Leaf::State(leaf) }
}

/// The table of 1.0.x, and the calls that read it.
///
/// The table is reference-counted, and freed when its last state goes. One reference is taken here for
/// the life of the process, so that its address stays good: each look then takes the lock once instead
/// of three times, and the table is not freed and made again as tasks come and go.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    table: NonNull<Lhash>,
    current: unsafe extern "C" fn(*mut ThreadId),
    lock: unsafe extern "C" fn(c_int, c_int, *const c_char, c_int),
    retrieve: unsafe extern "C" fn(*mut Lhash, *const c_void) -> *mut c_void,
    items: unsafe extern "C" fn(*const Lhash) -> c_ulong,
    each: unsafe extern "C" fn(
        *mut Lhash,
        unsafe extern "C" fn(*mut c_void, *mut c_void),
        *mut c_void,
    ),
}

// SAFETY: the table's address is only used under libcrypto's lock.
unsafe impl Send for Table {}
// SAFETY: as above.
unsafe impl Sync for Table {}

/// CRYPTO_LOCK_ERR.
const LOCK_ERR: c_int = 1;
/// CRYPTO_LOCK | CRYPTO_READ.
const LOCK_READ: c_int = 5;
/// CRYPTO_UNLOCK | CRYPTO_READ.
const UNLOCK_READ: c_int = 6;

impl Table {
    /// Whether the library keeps its thread states in a table.
    pub(super) fn exists(symbols: &Symbols) -> bool {
        symbols.ERR_get_err_state_table.is_some()
    }

    /// Takes hold of the table, for ever. `None` where a call is missing, or where no thread has a
    /// state: the table is made with the first.
    pub(super) fn hold(symbols: &Symbols) -> Option<Self> {
        let (get, current, lock, retrieve, items, each) = (
            symbols.ERR_get_err_state_table?,
            symbols.CRYPTO_THREADID_current?,
            symbols.CRYPTO_lock?,
            symbols.lh_retrieve?,
            symbols.lh_num_items?,
            symbols.lh_doall_arg?,
        );
        // SAFETY: no preconditions; counts a reference, which is never given back.
        let table = NonNull::new(unsafe { get() })?;
        Some(Self { table, current, lock, retrieve, items, each })
    }

    pub(super) fn find(&self) -> Found {
        // The table compares thread ids only, which are the first thing in a state.
        let mut probe = MaybeUninit::<[ThreadId; 76]>::uninit();
        const { assert!(size_of::<[ThreadId; 76]>() >= 600) };
        // SAFETY: the call writes one CRYPTO_THREADID to the place given, which is large enough.
        unsafe { (self.current)(probe.as_mut_ptr().cast()) };
        let locked = self.lock();
        // SAFETY: the table is held and read-locked; `probe` is as large as an ERR_STATE, of which
        // hash and comparison read the thread id, which was written above.
        let state = unsafe { (self.retrieve)(self.table.as_ptr(), probe.as_ptr().cast()) };
        drop(locked);
        if state.is_null() {
            return Found::Absent;
        }
        // SAFETY: what the table holds are ERR_STATEs of this layout (compared at calibration).
        // This one belongs to the calling thread, which is here and so neither writes nor frees it.
        Found::State(unsafe { State::at(state, &layout::V1_0) })
    }

    /// Calls `each` with every state, under the table's lock: it must be quick, and must not call
    /// libcrypto.
    pub(super) fn each_state(&self, each: &mut dyn FnMut(State)) {
        let mut each: &mut dyn FnMut(State) = each;
        let locked = self.lock();
        // SAFETY: the table is held and read-locked; `visit` has the signature asked for and gets
        // the closure it expects, which outlives the call.
        unsafe { (self.each)(self.table.as_ptr(), visit, (&raw mut each).cast()) };
        drop(locked);
    }

    /// Number of states, and the fields of the hash table that say which bucket a hash goes to.
    pub(super) fn buckets(&self) -> Buckets {
        let locked = self.lock();
        // SAFETY: the table is held and read-locked.
        let items = unsafe { (self.items)(self.table.as_ptr()) } as usize;
        // SAFETY: LHASH of 1.0.x begins with three pointers, followed by the fields of
        // `LhashHead`; it is read-locked. `items` below confirms that the reading is right.
        let head = unsafe { self.table.cast::<LhashHead>().read() };
        drop(locked);
        let agreed = head.num_items == items && head.pmax != 0 && head.num_alloc_nodes != 0;
        Buckets { items, head: agreed.then_some(head) }
    }

    fn lock(&self) -> Locked<'_> {
        // SAFETY: a lock number that exists in each 1.0.x; the caller holds no lock of libcrypto.
        unsafe { (self.lock)(LOCK_READ, LOCK_ERR, FILE.as_ptr(), 0) };
        Locked(self)
    }
}

struct Locked<'a>(&'a Table);

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // SAFETY: unlocks what `Table::lock` locked, on the same thread.
        unsafe { (self.0.lock)(UNLOCK_READ, LOCK_ERR, FILE.as_ptr(), 0) };
    }
}

/// Shown by lock debugging of 1.0.x as the place of the call.
const FILE: &CStr = c"sslsweep";

unsafe extern "C" fn visit(state: *mut c_void, closure: *mut c_void) {
    // SAFETY: `each_state` passes its closure, which nothing else uses during the walk.
    let each = unsafe { &mut *closure.cast::<&mut dyn FnMut(State)>() };
    // SAFETY: the table holds ERR_STATEs of 1.0.x; the lock that is held keeps them from being
    // removed. Their owners may push errors meanwhile: the fields read are words, and a count that
    // is a moment old is what a probe may show.
    let state = unsafe { State::at(state, &layout::V1_0) };
    // A panic must not unwind through libcrypto, which holds its lock.
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| each(state)));
}

/// The head of `_LHASH` in 1.0.x.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct LhashHead {
    nodes: usize,
    compare: usize,
    hash: usize,
    pub(super) num_nodes: u32,
    pub(super) num_alloc_nodes: u32,
    p: u32,
    pmax: u32,
    up_load: usize,
    down_load: usize,
    num_items: usize,
}

impl LhashHead {
    /// The bucket that a hash goes to: the linear hashing of lhash.c, as the manual's references
    /// (Litwin 1980) describe it.
    pub(super) fn bucket(&self, hash: usize) -> usize {
        let bucket = hash % self.pmax as usize;
        if bucket < self.p as usize { hash % self.num_alloc_nodes as usize } else { bucket }
    }
}

/// The table's figures; `head` only where it agreed with the public count.
pub(super) struct Buckets {
    pub(super) items: usize,
    pub(super) head: Option<LhashHead>,
}
