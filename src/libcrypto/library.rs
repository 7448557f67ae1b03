//! One libcrypto that is bound: what can be asked of it and done with it.

use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::ops::Range;
use std::path::Path;
use std::ptr::NonNull;

use super::calibrate;
use super::census::{self, Census};
use super::entry::{Entry, Reason};
use super::layout;
use super::locking::HasLocks;
use super::reader::{Found, Reader};
use super::symbols::Symbols;
use super::{BindError, Line};
use crate::sys::dl::Handle;
use crate::sys::objects::Object;
use crate::sys::pin::is_in_an_object;

/// A libcrypto that is loaded in this process and bound for its life.
///
/// All calls act on the calling thread's error queue or thread state, unless they say otherwise, and
/// may be made from any thread, but not from a signal handler.
#[derive(Debug)]
pub struct Library {
    object: Object,
    handle: Handle,
    line: Line,
    version: String,
    pub(super) symbols: Symbols,
    reader: Reader,
    shares_states: bool,
}

/// How a library's queues are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueSource<'a> {
    /// By reading the thread's state in memory: allocates nothing and calls nothing of libcrypto
    /// (on 1.0.x: takes its lock to find the state).
    Layout,
    /// By ERR_peek_error(3), which gives a thread a state it did not have; for the reason given.
    PublicApi(&'a str),
}

/// The calling thread's state in one library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThreadState {
    /// The thread has none: it has not used the library, or gave its state back.
    Absent,
    /// It has one.
    Present {
        /// Errors in its queue, at most 15: the ring keeps the newest.
        depth: usize,
    },
}

impl ThreadState {
    /// Errors in the queue, 0 where there is no state.
    #[inline]
    #[must_use]
    pub fn depth(self) -> usize {
        match self {
            Self::Absent => 0,
            Self::Present { depth } => depth,
        }
    }
}

/// How far [`Library::roll_back`] goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Mark {
    /// The queue was empty: there was nothing to mark, and nothing to keep.
    None,
    /// A mark was set.
    Own,
    /// The newest error had a mark of the caller's. Up to 1.1.1 an error has one mark at most, which
    /// pop_to_mark takes away: it must be set again.
    Shared,
}

/// Errors that a ring can hold. A queue of this depth may have lost older ones.
pub const FULL: usize = 15;

/// A libcrypto whose calls are known, before any of them but that for its version was made: it has
/// allocated nothing on our account.
pub(super) struct Resolved {
    pub(super) handle: Handle,
    pub(super) symbols: Symbols,
    pub(super) version: String,
    pub(super) line: Line,
}

impl Resolved {
    /// Returns `None` where the object is no libcrypto. Changes what dlerror(3) says on the calling
    /// thread.
    ///
    /// The symbols may be used as long as the handle is kept.
    ///
    /// # Errors
    /// The object is a libcrypto that cannot be driven.
    pub(super) fn of(object: &Object) -> Result<Option<Self>, BindError> {
        let handle =
            if object.is_program { Handle::program() } else { Handle::loaded(&object.path) };
        let Some(handle) = handle else { return Ok(None) };
        // Through a libssl the symbol resolves to the libcrypto it was linked with: only an address
        // in the object's own segments makes it the library.
        let own = |name: &CStr| {
            handle.symbol(name).filter(|address| object.contains(address.as_ptr() as usize))
        };
        if own(c"ERR_clear_error").is_none() {
            return Ok(None);
        }
        // SAFETY: addresses are those of an object that exports ERR_clear_error from its own text;
        // whoever keeps the symbols keeps `handle`, so that it stays mapped.
        let symbols = unsafe { Symbols::resolve(&own) }
            .map_err(|symbol| BindError::MissingSymbol { library: object.path.clone(), symbol })?;
        let version = version_text(&symbols)
            .ok_or_else(|| BindError::NoVersion { library: object.path.clone() })?;
        let line = Line::from_version_text(&version);
        Ok(Some(Self { handle, symbols, version, line }))
    }
}

impl Library {
    /// Binds the library that `object` is, and calibrates the reading of its queues.
    ///
    /// Returns `None` where the object is no libcrypto. Must run on a throw-away thread: it raises
    /// errors there, and changes what dlerror(3) says there.
    ///
    /// # Errors
    /// The object is a libcrypto that cannot be driven.
    pub(super) fn bind(object: Object) -> Result<Option<Self>, BindError> {
        let Some(Resolved { mut handle, symbols, version, line }) = Resolved::of(&object)? else {
            return Ok(None);
        };
        if line == Line::V1_0
            && let Some(callback) = symbols.CRYPTO_get_locking_callback
        {
            let locks = HasLocks::of(callback, handle);
            if !locks.now() {
                return Err(BindError::NoLocks { library: object.path, locks });
            }
            handle = locks.into_handle();
        }
        let shares_states = matches!(line, Line::V1_0 | Line::LibreSsl)
            && symbols.ERR_get_err_state_table.is_some()
            && symbols.ERR_remove_thread_state.is_some();
        let reader = calibrate::reader(&symbols, line);
        Ok(Some(Self { object, handle, line, version, symbols, reader, shares_states }))
    }

    /// The file it was loaded from, or the program it is part of.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.object.path
    }

    /// Its release line.
    #[must_use]
    pub fn line(&self) -> Line {
        self.line
    }

    /// Its version text, such as `OpenSSL 3.0.19 27 Jan 2026`. See OpenSSL_version(3).
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// How its queues are looked at.
    #[must_use]
    pub fn queue_source(&self) -> QueueSource<'_> {
        match &self.reader {
            Reader::Table(_) | Reader::Key(_) => QueueSource::Layout,
            Reader::PublicApi(reason) => QueueSource::PublicApi(reason),
        }
    }

    /// Whether thread states live in one table of the whole process, so that they must be given
    /// back: 1.0.x and old LibreSSL.
    #[inline]
    #[must_use]
    pub fn shares_states(&self) -> bool {
        self.shares_states
    }

    /// Whether `address` lies in this library.
    #[must_use]
    pub fn contains(&self, address: usize) -> bool {
        self.object.contains(address)
    }

    /// Address of a symbol that this library itself defines.
    #[must_use]
    pub fn address_of(&self, name: &CStr) -> Option<NonNull<c_void>> {
        self.handle.symbol(name).filter(|address| self.contains(address.as_ptr() as usize))
    }

    /// The calling thread's state. Creates none where [`Self::queue_source`] is
    /// [`QueueSource::Layout`]; otherwise any depth above 0 is reported as 1.
    #[inline]
    #[must_use]
    pub fn state(&self) -> ThreadState {
        match self.find() {
            Found::State(state) => ThreadState::Present { depth: state.depth() },
            Found::Absent => ThreadState::Absent,
            Found::Unreadable => ThreadState::Present { depth: usize::from(self.peek() != 0) },
        }
    }

    /// The calling thread's state, as far as it can be told without calling anything that might make
    /// one: for a probe. `None` where it cannot.
    #[must_use]
    pub fn state_in_memory(&self) -> Option<ThreadState> {
        match self.find() {
            Found::State(state) => Some(ThreadState::Present { depth: state.depth() }),
            Found::Absent => Some(ThreadState::Absent),
            Found::Unreadable => None,
        }
    }

    /// Bytes of one thread's error queue, where its layout is known. What hangs off it (texts, and
    /// the thread's random generators) comes on top.
    #[must_use]
    pub fn state_size(&self) -> Option<usize> {
        match &self.reader {
            Reader::Table(_) => Some(layout::V1_0.size),
            Reader::Key(path) => Some(path.layout.size),
            Reader::PublicApi(_) => None,
        }
    }

    /// Errors in the calling thread's queue, 0 to 15.
    #[inline]
    #[must_use]
    pub fn depth(&self) -> usize {
        self.state().depth()
    }

    pub(super) fn reader(&self) -> &Reader {
        &self.reader
    }

    #[inline]
    fn find(&self) -> Found {
        match &self.reader {
            Reader::Key(path) => path.find(),
            Reader::Table(table) => table.find(),
            Reader::PublicApi(_) => Found::Unreadable,
        }
    }

    /// Code of the oldest error, 0 where there is none. Gives the thread a state if it had none.
    /// See ERR_peek_error(3).
    #[doc(alias = "ERR_peek_error")]
    #[inline]
    #[must_use]
    pub fn peek(&self) -> c_ulong {
        // SAFETY: takes no pointer and touches only the queue of the calling thread.
        unsafe { (self.symbols.ERR_peek_error)() }
    }

    /// Empties the queue. See ERR_clear_error(3).
    #[doc(alias = "ERR_clear_error")]
    #[inline]
    pub fn clear(&self) {
        // SAFETY: takes no pointer and touches only the queue of the calling thread.
        unsafe { (self.symbols.ERR_clear_error)() }
    }

    /// Takes the errors out, oldest first, and shows each; returns how many there were.
    #[doc(alias = "ERR_get_error_all")]
    #[doc(alias = "ERR_get_error_line_data")]
    pub fn drain(&self, each: &mut dyn FnMut(&Entry<'_>)) -> usize {
        let mut count = 0;
        while let Some(entry) = self.get() {
            each(&entry);
            count += 1;
        }
        count
    }

    /// Shows the errors at these places, the oldest being at 0, and changes nothing.
    ///
    /// Returns false where the queue cannot be read in memory; then the oldest error is shown
    /// alone, and only where the places begin with it.
    pub fn entries(&self, places: Range<usize>, each: &mut dyn FnMut(&Entry<'_>)) -> bool {
        match self.find() {
            Found::State(state) => state.entries(places, each),
            Found::Absent => {}
            Found::Unreadable => {
                let code = self.peek();
                if code != 0 && places.start == 0 {
                    each(&Entry { code, file: None, line: 0, function: None, data: None });
                }
                return false;
            }
        }
        true
    }

    fn get(&self) -> Option<Entry<'_>> {
        let mut file: *const c_char = std::ptr::null();
        let mut line: c_int = 0;
        let mut function: *const c_char = std::ptr::null();
        let mut data: *const c_char = std::ptr::null();
        let mut flags: c_int = 0;
        let code = if let Some(get) = self.symbols.ERR_get_error_all {
            // SAFETY: all five are valid places for what the call writes.
            unsafe {
                get(&raw mut file, &raw mut line, &raw mut function, &raw mut data, &raw mut flags)
            }
        } else {
            // SAFETY: all four are valid places for what the call writes.
            unsafe {
                (self.symbols.ERR_get_error_line_data)(
                    &raw mut file,
                    &raw mut line,
                    &raw mut data,
                    &raw mut flags,
                )
            }
        };
        /// ERR_TXT_STRING.
        const STRING: c_int = 2;
        // Before 3.0 the file is the pointer that the raiser gave: gone, if it was an engine that has been
        // unloaded since.
        if self.symbols.ERR_get_error_all.is_none() && !is_in_an_object(file as usize) {
            file = std::ptr::null();
        }
        (code != 0).then(|| Entry {
            code,
            file: text(file),
            line: u32::try_from(line).unwrap_or(0),
            function: text(function),
            data: if flags & STRING != 0 { text(data) } else { None },
        })
    }

    /// Marks the newest error; false where the queue is empty. See ERR_set_mark(3).
    #[doc(alias = "ERR_set_mark")]
    pub fn set_mark(&self) -> bool {
        // SAFETY: takes no pointer and touches only the queue of the calling thread.
        unsafe { (self.symbols.ERR_set_mark)() != 0 }
    }

    /// Drops what was added since the last mark, and the mark; false where there was none, and
    /// then the queue is empty. See ERR_pop_to_mark(3).
    #[doc(alias = "ERR_pop_to_mark")]
    pub fn pop_to_mark(&self) -> bool {
        // SAFETY: takes no pointer and touches only the queue of the calling thread.
        unsafe { (self.symbols.ERR_pop_to_mark)() != 0 }
    }

    /// Marks the newest error in such a way that [`roll_back`](Self::roll_back) leaves all earlier
    /// marks as they are.
    ///
    /// Where the queue cannot be read in memory, a mark that is on the newest error already cannot be
    /// told from none, and will be lost.
    pub fn mark(&self) -> Mark {
        match self.find() {
            Found::State(state) if state.shares_mark() => Mark::Shared,
            _ if self.set_mark() => Mark::Own,
            _ => Mark::None,
        }
    }

    /// Drops what was added since `mark` was set, when the queue had `depth` errors. Marks that were
    /// set since and forgotten, as by a task that panicked, do not stop it.
    pub fn roll_back(&self, mark: Mark, depth: usize) {
        if mark == Mark::None {
            self.clear();
            return;
        }
        while self.pop_to_mark() && self.depth() > depth {}
        if mark == Mark::Shared {
            self.set_mark();
        }
    }

    /// Puts an error on the queue, as a library of the application would; false where this
    /// libcrypto offers no call for it. `library` should be ERR_LIB_USER (128) or above.
    #[doc(alias = "ERR_put_error")]
    pub fn raise(&self, library: i32, reason: i32, file: &'static CStr, line: i32) -> bool {
        raise(&self.symbols, library, reason, file, line)
    }

    /// Gives the calling thread's state back, by the call that does so on this line.
    ///
    /// On 1.0.x and old LibreSSL this takes the state out of the shared table. On 1.1.0 and later it
    /// throws away the thread's random generators too: for threads that end or rest, not for
    /// each task (docs/guard.md). On BoringSSL and AWS-LC nothing but the queue can be given back.
    #[doc(alias = "ERR_remove_thread_state")]
    #[doc(alias = "OPENSSL_thread_stop")]
    pub fn release(&self) {
        // By line, not by presence: 1.1.0 to 3.6 export the call of 1.0.x, which does nothing there.
        match (
            self.shares_states,
            self.symbols.ERR_remove_thread_state,
            self.symbols.OPENSSL_thread_stop,
        ) {
            (true, Some(remove), _) => {
                // SAFETY: null means the calling thread (ERR_remove_thread_state(3)).
                unsafe { remove(std::ptr::null()) };
            }
            (true, None, _) | (false, _, None) => self.clear(),
            (false, _, Some(stop)) => {
                // SAFETY: takes no pointer and acts on the calling thread, which is not inside a
                // call of libcrypto here (OPENSSL_thread_stop(3)).
                unsafe { stop() };
            }
        }
    }

    /// Counts the thread states of the whole process, where they live in one table.
    ///
    /// Takes the table's lock for reading while it walks it: about 20 microseconds for 2,000 states.
    /// Creates no state and changes none.
    #[must_use]
    pub fn census(&self) -> Option<Census> {
        match &self.reader {
            Reader::Table(table) => Some(census::take(table)),
            Reader::Key(_) | Reader::PublicApi(_) => None,
        }
    }

    /// What an error code means, such as `SSL routines: unsupported protocol`.
    ///
    /// Where the library has not loaded its texts, the numbers. See ERR_reason_error_string(3).
    #[must_use]
    pub fn reason(&self, code: c_ulong) -> String {
        let numbers = Reason::of(code, self.line);
        // SAFETY: takes no pointer; answers a text of static life, or null.
        let part = text(unsafe { (self.symbols.ERR_lib_error_string)(code) });
        let part = part.map_or_else(
            || format!("library {}", numbers.library),
            |text| text.to_string_lossy().into_owned(),
        );
        // SAFETY: as above.
        let reason = text(unsafe { (self.symbols.ERR_reason_error_string)(code) });
        let reason = match reason {
            Some(text) => text.to_string_lossy().into_owned(),
            None if numbers.is_system() => i32::try_from(numbers.reason)
                .map(|errno| std::io::Error::from_raw_os_error(errno).to_string())
                .unwrap_or_default(),
            None => format!("reason {}", numbers.reason),
        };
        format!("{part}: {reason}")
    }
}

/// A text of libcrypto's, for as long as the entry it belongs to is looked at.
fn text<'a>(text: *const c_char) -> Option<&'a CStr> {
    if text.is_null() {
        return None;
    }
    // SAFETY: not null, so NUL-terminated. It is static, or (3.x) a copy that the thread's state owns
    // until the slot is used again, which needs a further error on this thread.
    Some(unsafe { CStr::from_ptr(text) })
}

fn version_text(symbols: &Symbols) -> Option<String> {
    let call = symbols.OpenSSL_version.or(symbols.SSLeay_version)?;
    // SAFETY: 0 (OPENSSL_VERSION, SSLEAY_VERSION) is valid on every release; the text is static.
    let version = unsafe { call(0) };
    text(version).map(|text| text.to_string_lossy().into_owned())
}

/// Puts an error on the calling thread's queue.
pub(super) fn raise(
    symbols: &Symbols,
    library: i32,
    reason: i32,
    file: &'static CStr,
    line: i32,
) -> bool {
    if let (Some(new), Some(debug), Some(set)) =
        (symbols.ERR_new, symbols.ERR_set_debug, symbols.ERR_set_error)
    {
        // SAFETY: takes no pointer; starts an entry on the calling thread's queue.
        unsafe { new() };
        // SAFETY: both texts are NUL-terminated and static; the entry was started above.
        unsafe { debug(file.as_ptr(), line, c"sslsweep".as_ptr()) };
        // SAFETY: a null format means that there is no text and so no further argument.
        unsafe { set(library, reason, std::ptr::null()) };
        return true;
    }
    let Some(put) = symbols.ERR_put_error else { return false };
    // SAFETY: the file's name is NUL-terminated and static, as the call asks for.
    unsafe { put(library, 0, reason, file.as_ptr(), line) };
    true
}
