//! Finds out, on a thread of its own, how to read a library's thread states, and proves it.
//!
//! Three errors with known codes, files and lines are raised on the throw-away thread. A way of
//! reading is taken only if it decodes exactly those, sees the queue grow and sees it empty again.

use std::ffi::{CStr, c_ulong};

use super::Line;
use super::layout::{self, Layout, State};
use super::library::{FULL, raise};
use super::reader::{Found, KeyPath, Reader, SPARSE_ENTRY, SPARSE_NODES, Step, Table};
use super::symbols::Symbols;
use crate::sys::memory::SafeReader;
use crate::sys::thread::Key;

/// ERR_LIB_USER: numbers that libcrypto leaves to applications.
const LIBRARY: i32 = 128;
const KNOWN: [(i32, &CStr, i32); 3] =
    [(101, c"sslsweep-a", 11), (102, c"sslsweep-b", 22), (103, c"sslsweep-c", 33)];

/// Decides how thread states are read. Must run on a thread that ends soon after: it leaves a
/// thread state behind on lines where the thread's end takes it away.
pub(super) fn reader(symbols: &Symbols, line: Line) -> Reader {
    match try_reader(symbols, line) {
        Ok(reader) => reader,
        Err(reason) => Reader::PublicApi(reason.to_owned()),
    }
}

fn try_reader(symbols: &Symbols, line: Line) -> Result<Reader, &'static str> {
    if cfg!(not(target_pointer_width = "64")) {
        return Err("layouts are known of 64-bit builds only");
    }
    if matches!(line, Line::BoringSsl | Line::AwsLc | Line::Unknown) {
        return Err("this line's thread states have no layout known here");
    }
    // On 1.0.x a new thread can inherit a dead thread's queue.
    clear(symbols);
    let candidate = if Table::exists(symbols) {
        raise_known(symbols)?;
        let table = Table::hold(symbols).ok_or("the table of thread states cannot be read")?;
        clear(symbols);
        Reader::Table(table)
    } else {
        Reader::Key(key_path(symbols)?)
    };
    let verdict = prove(symbols, &candidate);
    clear(symbols);
    if let (Reader::Table(_), Some(remove)) = (&candidate, symbols.ERR_remove_thread_state) {
        // SAFETY: null means the calling thread (ERR_remove_thread_state(3)).
        unsafe { remove(std::ptr::null()) };
    }
    verdict.map(|()| candidate)
}

fn clear(symbols: &Symbols) {
    // SAFETY: takes no pointer and touches only the queue of the calling thread.
    unsafe { (symbols.ERR_clear_error)() };
}

fn raise_known(symbols: &Symbols) -> Result<(), &'static str> {
    for (reason, file, line) in KNOWN {
        if !raise(symbols, LIBRARY, reason, file, line) {
            return Err("the library has no call that raises an error");
        }
    }
    Ok(())
}

/// Whether `reader` sees what happens to the calling thread's queue.
fn prove(symbols: &Symbols, reader: &Reader) -> Result<(), &'static str> {
    let found = || match reader {
        Reader::Table(table) => table.find(),
        Reader::Key(path) => path.find(),
        Reader::PublicApi(_) => Found::Unreadable,
    };
    raise_known(symbols)?;
    let Found::State(state) = found() else { return Err("the thread's state was not found") };
    let mut seen = Vec::new();
    state.entries(0..FULL, &mut |entry| {
        seen.push((entry.code, entry.file.map(CStr::to_owned), entry.line));
    });
    if state.depth() != KNOWN.len() || seen.len() != KNOWN.len() {
        return Err("the depth read is not the number of errors raised");
    }
    for ((_, file, line), (code, seen_file, seen_line)) in KNOWN.into_iter().zip(seen) {
        let mut raised_line = 0;
        let mut raised_file = std::ptr::null();
        // SAFETY: file and line are valid places; null says that data and flags are not wanted.
        let raised = unsafe {
            (symbols.ERR_get_error_line_data)(
                &raw mut raised_file,
                &raw mut raised_line,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        };
        if (raised, line) != (code, raised_line)
            || seen_file.as_deref() != Some(file)
            || i64::from(seen_line) != i64::from(line)
        {
            return Err("the errors read are not those raised");
        }
    }
    match found() {
        Found::State(state) if state.depth() == 0 => Ok(()),
        _ => Err("the queue does not read as empty after it was emptied"),
    }
}

/// Looks behind every pthread key of this thread for a state that holds the known errors. Memory is
/// read through the kernel: a wrong guess must not fault.
fn key_path(symbols: &Symbols) -> Result<KeyPath, &'static str> {
    let mut memory = SafeReader::new().map_err(|_| "no file descriptors left for calibration")?;
    raise_known(symbols)?;
    // SAFETY: takes no pointer; answers the oldest error of the calling thread.
    let first = unsafe { (symbols.ERR_peek_error)() };
    let found = Key::all().find_map(|key| {
        let value = key.value() as usize;
        if value == 0 {
            return None;
        }
        let leaf = sparse_leaf(&mut memory, value);
        [(Some(value), Step::Direct), (leaf, Step::SparseArray)].into_iter().find_map(
            |(address, step)| {
                let address = address?;
                [&layout::V1_1, &layout::V3].into_iter().find_map(|layout| {
                    holds_known(&mut memory, address, layout, first).then_some(KeyPath {
                        key,
                        layout,
                        step,
                    })
                })
            },
        )
    });
    clear(symbols);
    found.ok_or("no pthread key leads to the thread's state")
}

fn sparse_leaf(memory: &mut SafeReader, table: usize) -> Option<usize> {
    let array = memory.word(table.checked_add(SPARSE_ENTRY)?)?;
    let levels = i32::from_ne_bytes(memory.read(array)?);
    let nodes = memory.word(array.checked_add(SPARSE_NODES)?)?;
    if levels == 1 { memory.word(nodes) } else { None }
}

fn holds_known(
    memory: &mut SafeReader,
    address: usize,
    layout: &'static Layout,
    first: c_ulong,
) -> bool {
    const LARGEST: usize = 904;
    // The smaller layout is tried with as many bytes as it has, lest a page's end refuses it.
    let mut copy = [0; LARGEST];
    if layout.size == LARGEST {
        match memory.read::<LARGEST>(address) {
            Some(bytes) => copy = bytes,
            None => return false,
        }
    } else {
        match memory.read::<584>(address) {
            Some(bytes) => copy[..584].copy_from_slice(&bytes),
            None => return false,
        }
    }
    let copy = Aligned(copy);
    // SAFETY: the copy is as large as the layout, aligned, and nobody writes to it. The texts that
    // it points to are not followed: only depth and codes are read here.
    let state = unsafe { State::at(copy.0.as_ptr().cast(), layout) };
    state.depth() == KNOWN.len() && state.oldest_code() == first
}

#[repr(C, align(16))]
struct Aligned([u8; 904]);
