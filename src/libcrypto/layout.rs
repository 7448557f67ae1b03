//! Where the fields of ERR_STATE lie, per release line, and reading them.
//!
//! A thread's error queue is a ring of 16 slots in its ERR_STATE, of which 15 are usable: `top` is the
//! newest error, `bottom` the slot before the oldest. Offsets were decoded against raised errors
//! (docs/binding.md); `calibrate` compares them with the library at hand before they are used.

use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::ops::Range;
use std::sync::atomic::{AtomicI32, Ordering};

use super::Entry;
use crate::sys::pin::is_in_an_object;

/// Slots of the ring; one stays empty.
const SLOTS: usize = 16;
/// `data_flags`: the data is a text (ERR_TXT_STRING).
const STRING: c_int = 2;
/// `flags`: the entry is taken back by constant-time code and will be dropped by the next call
/// (ERR_FLAG_CLEAR).
const TAKEN_BACK: c_int = 2;
/// `flags`: the entry has a mark (ERR_FLAG_MARK), up to 1.1.1; later releases count an entry's marks.
const MARKED: c_int = 1;

/// Offsets in ERR_STATE, in bytes, on 64-bit machines.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) size: usize,
    flags: usize,
    buffer: usize,
    data: usize,
    data_flags: usize,
    file: usize,
    line: usize,
    function: Option<usize>,
    top: usize,
    bottom: usize,
    counts_marks: bool,
    /// Whether the state has copies of file names of its own, instead of the caller's pointers.
    copies_file: bool,
}

impl Layout {
    /// Offset of `top`, which `bottom` lies behind.
    pub(super) fn ends(&self) -> usize {
        debug_assert_eq!(self.bottom, self.top + size_of::<c_int>());
        self.top
    }
}

/// 1.0.x and old LibreSSL; the thread id comes first.
pub(super) static V1_0: Layout = Layout {
    size: 600,
    flags: 16,
    buffer: 80,
    data: 208,
    data_flags: 336,
    file: 400,
    line: 528,
    function: None,
    top: 592,
    bottom: 596,
    counts_marks: false,
    copies_file: false,
};

/// 1.1.0 and 1.1.1.
pub(super) static V1_1: Layout = Layout {
    size: 584,
    flags: 0,
    buffer: 64,
    data: 192,
    data_flags: 320,
    file: 384,
    line: 512,
    function: None,
    top: 576,
    bottom: 580,
    counts_marks: false,
    copies_file: false,
};

/// 3.x and 4.x.
pub(super) static V3: Layout = Layout {
    size: 904,
    flags: 0,
    buffer: 128,
    data: 256,
    data_flags: 512,
    file: 576,
    line: 704,
    function: Some(768),
    top: 896,
    bottom: 900,
    counts_marks: true,
    copies_file: true,
};

/// The ERR_STATE of one thread, at an address that was found for that thread.
#[derive(Clone, Copy)]
pub(super) struct State {
    address: *const u8,
    layout: &'static Layout,
}

impl State {
    /// # Safety
    /// `address` must be an ERR_STATE of `layout` that stays allocated while this value is used: the
    /// calling thread's own, or one in the table of 1.0.x under its lock. Of the latter only the
    /// thread id and the depth may be asked: its owner may be changing the entries.
    #[inline]
    pub(super) unsafe fn at(address: *const c_void, layout: &'static Layout) -> Self {
        Self { address: address.cast(), layout }
    }

    /// Number of errors in the queue, 0 to 15.
    #[inline]
    pub(super) fn depth(self) -> usize {
        let top: c_int = self.field(self.layout.top);
        let bottom: c_int = self.field(self.layout.bottom);
        (top.wrapping_sub(bottom) as usize) % SLOTS
    }

    /// As [`depth`](Self::depth), for the state of a thread that may be pushing errors meanwhile: a
    /// count that is a moment old.
    pub(super) fn depth_elsewhere(self) -> usize {
        let end = |offset| {
            // SAFETY: the offset lies in the structure, which is allocated (see `at`).
            let end = unsafe { self.address.add(offset) };
            // SAFETY: an aligned int for as long as the state lives; its owner writes it as a C int,
            // which no compiler tears.
            let end = unsafe { AtomicI32::from_ptr(end.cast_mut().cast()) };
            end.load(Ordering::Relaxed)
        };
        (end(self.layout.top).wrapping_sub(end(self.layout.bottom)) as usize) % SLOTS
    }

    /// Code of the oldest error, whatever its flags.
    pub(super) fn oldest_code(self) -> c_ulong {
        let bottom: c_int = self.field(self.layout.bottom);
        self.item(self.layout.buffer, (bottom as usize).wrapping_add(1) % SLOTS)
    }

    /// Whether the newest error has a mark, and could have no second one beside it.
    pub(super) fn shares_mark(self) -> bool {
        let top: c_int = self.field(self.layout.top);
        let flags: c_int = self.item(self.layout.flags, (top as usize) % SLOTS);
        !self.layout.counts_marks && self.depth() > 0 && flags & MARKED != 0
    }

    /// The thread id that the state is filed under, on 1.0.x.
    pub(super) fn thread_id(self) -> (usize, c_ulong) {
        (self.field(0), self.field(size_of::<usize>()))
    }

    /// Shows the entries at these places, the oldest being at 0; changes nothing.
    pub(super) fn entries(self, places: Range<usize>, each: &mut dyn FnMut(&Entry<'_>)) {
        let bottom: c_int = self.field(self.layout.bottom);
        for position in places.start + 1..=places.end.min(self.depth()) {
            let slot = (bottom as usize).wrapping_add(position) % SLOTS;
            let flags: c_int = self.item(self.layout.flags, slot);
            if flags & TAKEN_BACK != 0 {
                continue;
            }
            let code: c_ulong = self.item(self.layout.buffer, slot);
            let data_flags: c_int = self.item(self.layout.data_flags, slot);
            let data =
                if data_flags & STRING != 0 { self.text(self.layout.data, slot) } else { None };
            each(&Entry {
                code,
                file: self.file(slot),
                line: u32::try_from(self.item::<c_int>(self.layout.line, slot)).unwrap_or(0),
                function: self.layout.function.and_then(|offset| self.text(offset, slot)),
                data,
            });
        }
    }

    fn file(&self, slot: usize) -> Option<&CStr> {
        let file: usize = self.item(self.layout.file, slot);
        // Before 3.0 it is the pointer that the raiser gave: gone, if it was an engine that has been
        // unloaded since.
        (self.layout.copies_file || is_in_an_object(file))
            .then(|| self.text(self.layout.file, slot))
            .flatten()
    }

    fn text(&self, array: usize, slot: usize) -> Option<&CStr> {
        let text: *const c_char = self.item(array, slot);
        if text.is_null() {
            return None;
        }
        // SAFETY: libcrypto stores NUL-terminated texts here and frees them only when the slot is
        // used again, by the thread that owns the state (see `at`).
        Some(unsafe { CStr::from_ptr(text) })
    }

    fn item<T: Copy>(self, array: usize, slot: usize) -> T {
        self.field(array + slot * size_of::<T>())
    }

    #[inline]
    fn field<T: Copy>(self, offset: usize) -> T {
        debug_assert!(offset + size_of::<T>() <= self.layout.size);
        // SAFETY: the offset lies in the structure, which is allocated (see `at`).
        let field = unsafe { self.address.add(offset) };
        // SAFETY: the layout says that a field of this type is there, aligned by the C compiler.
        // Volatile, because a census reads states of other threads (see `at`).
        unsafe { field.cast::<T>().read_volatile() }
    }
}
