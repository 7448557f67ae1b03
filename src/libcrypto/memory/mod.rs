//! Memory accounting: what a libcrypto has allocated and not freed, by the source file that asked for
//! it, and an exact count of its thread states.
//!
//! A libcrypto lets its application replace its memory functions, as long as it has not allocated
//! anything ([`CRYPTO_set_mem_functions(3)`](https://docs.openssl.org/master/man3/OPENSSL_malloc/)).
//! Binding a library allocates, because it raises errors. So [`install_early`] works before the
//! registry: it walks the mapped objects and asks each libcrypto, and from then on the registry asks
//! each one that it finds before it binds it.
//!
//! The blocks are the C library's own, without a header: whatever somebody else frees, reallocates or
//! takes over stays right, and so does what is freed after the accounting has ended. What is
//! known of a block stands in a table of our own, outside libcrypto (`blocks.rs`).
//!
//! In the child of a fork the accounting stops, because the table's locks may be held there for ever;
//! the memory functions go on as plain ones.
//!
//! What is left out: the secure heap, and memory that libcrypto takes from the system by other ways.

use std::ffi::c_void;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde::Serialize;

use super::layout;
use super::library::Resolved;
use super::{Library, Line, MOST};
use crate::sys::{fork, heap, objects};

mod account;
mod blocks;
mod functions;
#[cfg(test)]
mod tests;

pub use account::{Figures, FileFigures, NO_FILE, OTHER_FILES, SizeClass};
pub use functions::allocations_here;

use account::Account;
use functions::{ACCOUNTS, FUNCTIONS};

/// What came of asking a libcrypto for its memory functions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Installation {
    /// Its allocations are counted from the first on.
    Installed,
    /// It had allocated before, and refused.
    TooLate,
    /// It was not asked.
    NotOffered {
        /// Why not.
        why: String,
    },
}

/// A libcrypto that was found, and whether its memory is counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The file it was loaded from, or the program it is part of.
    pub path: PathBuf,
    /// Whether its memory is counted.
    #[serde(flatten)]
    pub installation: Installation,
}

/// Why there are no figures of a library's memory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotCounted {
    /// Nobody has called [`install_early`] before the library was bound.
    #[error(
        "accounting was not asked for: call probe::memory::install_early() before the library's first use"
    )]
    NotAskedFor,
    /// It had allocated when it was asked.
    #[error(
        "the library had allocated before accounting was installed: call probe::memory::install_early() before its first use"
    )]
    TooLate,
    /// It was not asked.
    #[error("{0}")]
    NotOffered(String),
    /// Somebody has installed other functions since.
    #[error(
        "somebody else has replaced the library's memory functions since: nothing is counted now"
    )]
    Replaced,
    /// This process is the child of a fork.
    #[error("accounting stops in the child of a fork")]
    Forked,
}

/// A libcrypto that was looked at. Its place in `KNOWN` is that of its account.
struct Known {
    report: Report,
    /// An address in it.
    address: usize,
    /// Keeps it mapped: its memory functions lead here, and another library must not take its place.
    resolved: Option<Resolved>,
}

static KNOWN: [OnceLock<Known>; MOST] = [const { OnceLock::new() }; MOST];
/// How many places are taken; held while one is being filled.
static TAKEN: Mutex<usize> = Mutex::new(0);
static WANTED: AtomicBool = AtomicBool::new(false);

/// Counts the memory of each libcrypto that is loaded and has not allocated yet, and of each that the
/// registry will find later in such a state.
///
/// To be called before anything in the process uses OpenSSL, and not while another thread may be
/// using it for the first time. Says of each libcrypto found, now or earlier, what came of it.
/// In the child of a fork it does nothing.
#[doc(alias = "CRYPTO_set_mem_functions")]
#[doc(alias = "CRYPTO_set_mem_ex_functions")]
pub fn install_early() -> Vec<Report> {
    if !functions::stopped() && fork::on_child(functions::stop) {
        WANTED.store(true, Ordering::Relaxed);
        objects::loaded().into_iter().for_each(before_binding);
    }
    KNOWN.iter().map_while(OnceLock::get).map(|known| known.report.clone()).collect()
}

/// Installs the functions in the libcrypto that `object` is, if accounting is wanted and it was not
/// asked before. Called before it is bound.
pub(super) fn before_binding(object: objects::Object) {
    if !WANTED.load(Ordering::Relaxed) || functions::stopped() {
        return;
    }
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = KNOWN.iter().filter_map(OnceLock::get).any(|known| object.contains(known.address));
    let Some(place) = KNOWN.get(*taken).filter(|_| !known) else { return };
    let address = object.segments.first().map_or(0, |segment| segment.start);
    let (installation, resolved) = match Resolved::of(&object) {
        Ok(None) => return,
        Ok(Some(resolved)) => (install(&object, &resolved, *taken), Some(resolved)),
        Err(error) => (Installation::NotOffered { why: error.to_string() }, None),
    };
    let report = Report { path: object.path, installation };
    place.get_or_init(|| Known { report, address, resolved });
    *taken += 1;
}

/// How a line's memory functions are replaced. By line, not by presence: two lines have calls of one
/// name with different prototypes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Interface {
    /// CRYPTO_set_mem_ex_functions of 1.0.x.
    Ex,
    /// CRYPTO_set_mem_functions of 1.1.0 and later.
    Plain,
}

impl Interface {
    fn of(line: Line) -> Result<Self, &'static str> {
        match line {
            Line::V1_0 => Ok(Self::Ex),
            Line::V1_1 | Line::V3 | Line::V4 => Ok(Self::Plain),
            Line::AwsLc => Err(
                "AWS-LC takes memory functions at any time, even when it would free blocks by them that it got before",
            ),
            Line::BoringSsl | Line::LibreSsl => {
                Err("this line does not let its memory functions be replaced")
            }
            Line::Unknown => Err("how this release takes memory functions is unknown"),
        }
    }
}

fn install(object: &objects::Object, resolved: &Resolved, slot: usize) -> Installation {
    let not_offered = |why: &str| Installation::NotOffered { why: why.to_owned() };
    let interface = match Interface::of(resolved.line) {
        Ok(interface) => interface,
        Err(why) => return not_offered(why),
    };
    let (Some(functions), Some(account)) = (FUNCTIONS.get(slot), ACCOUNTS.get(slot)) else {
        return not_offered("too many libraries are counted already");
    };
    // Blocks that were got by somebody's functions must be freed by theirs.
    let found = current(interface, resolved);
    let own = match interface {
        // Null stands for the library's own functions.
        Interface::Ex => found.is_none_or(<*const c_void>::is_null) && plain_malloc(resolved),
        Interface::Plain => found.is_some_and(|found| object.contains(found as usize)),
    };
    if !own {
        return not_offered("somebody else has replaced its memory functions");
    }
    let (size, unnamed) = match resolved.line {
        Line::V1_0 => (layout::V1_0.size, false),
        Line::V1_1 => (layout::V1_1.size, false),
        _ => (layout::V3.size, true),
    };
    account.get_or_init(|| Box::new(Account::new(size, unnamed)));
    let symbols = &resolved.symbols;
    crate::sys::pin::ourselves();
    let taken =
        match (interface, symbols.CRYPTO_set_mem_ex_functions, symbols.CRYPTO_set_mem_functions) {
            (Interface::Ex, Some(set), _) => {
                // SAFETY: the three do what malloc, realloc and free do, and stay mapped: their
                // object was pinned above. The library says by its answer whether it took them.
                unsafe {
                    set(Some(functions.malloc), Some(functions.realloc), Some(functions::free_1_0))
                }
            }
            (Interface::Plain, _, Some(set)) => {
                // SAFETY: as above.
                unsafe {
                    set(Some(functions.malloc), Some(functions.realloc), Some(functions::free))
                }
            }
            _ => return not_offered("it lacks the call that replaces its memory functions"),
        };
    if taken == 1 { Installation::Installed } else { Installation::TooLate }
}

/// The address of the malloc function that a library has now.
fn current(interface: Interface, resolved: &Resolved) -> Option<*const c_void> {
    let symbols = &resolved.symbols;
    let get = match interface {
        Interface::Ex => symbols.CRYPTO_get_mem_ex_functions?,
        Interface::Plain => symbols.CRYPTO_get_mem_functions?,
    };
    let mut found = [std::ptr::null(); 3];
    let [malloc, realloc, free] = &mut found;
    // SAFETY: three valid places for three addresses.
    unsafe { get(malloc, realloc, free) };
    Some(found[0])
}

/// On 1.0.x: whether the functions without file and line are those of the C library.
fn plain_malloc(resolved: &Resolved) -> bool {
    let found = current(Interface::Plain, resolved);
    found.is_none_or(|found| found.is_null() || found == heap::address_of_malloc())
}

/// The figures of a library's memory now.
///
/// Looking allocates nothing in libcrypto and takes none of its locks. Each figure is as of a moment
/// ago while other threads work.
///
/// # Errors
/// Why there are none.
pub fn figures(library: &Library) -> Result<Figures, NotCounted> {
    if functions::stopped() {
        return Err(NotCounted::Forked);
    }
    let places = KNOWN.iter().zip(&ACCOUNTS).zip(&FUNCTIONS);
    let found =
        places.filter_map(|((known, account), functions)| Some((known.get()?, account, functions)));
    let (known, account, functions) = found
        .into_iter()
        .find(|(known, _, _)| library.contains(known.address))
        .ok_or(NotCounted::NotAskedFor)?;
    match &known.report.installation {
        Installation::Installed => {}
        Installation::TooLate => return Err(NotCounted::TooLate),
        Installation::NotOffered { why } => return Err(NotCounted::NotOffered(why.clone())),
    }
    let now = known.resolved.as_ref().and_then(|resolved| {
        let interface = Interface::of(resolved.line).ok()?;
        current(interface, resolved)
    });
    if !now.is_some_and(|now| std::ptr::addr_eq(now, functions.malloc as *const ())) {
        return Err(NotCounted::Replaced);
    }
    account.get().map(|account| account.figures()).ok_or(NotCounted::NotAskedFor)
}

/// How often a library has asked for memory since accounting was installed, 0 where it was not.
#[must_use]
pub fn allocations(library: &Library) -> u64 {
    KNOWN
        .iter()
        .zip(&ACCOUNTS)
        .filter(|(known, _)| known.get().is_some_and(|known| library.contains(known.address)))
        .find_map(|(_, account)| account.get().map(|account| account.allocations()))
        .unwrap_or(0)
}
