//! Every libcrypto of this process, found once and looked for again when the dynamic linker has
//! mapped something new.
//!
//! The list only grows: what is bound is pinned. It is published whole, so that a guard reads it with
//! one load. The search runs on a throw-away thread (see `calibrate`).

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::BindError;
use super::library::Library;
use super::look::{Bound, Only};
use super::memory;
use crate::sys::{exit, fork, objects, walk};

/// More libraries than this are not bound; a guard keeps a few bytes for each.
pub const MOST: usize = 16;

struct List {
    bound: Vec<Bound>,
    libraries: Vec<&'static Library>,
    refused: Vec<(objects::Object, BindError)>,
}

static LIST: AtomicPtr<List> = AtomicPtr::new(std::ptr::null_mut());
/// [`Only::word`] of the list; 0 while the list changes.
static ONLY: AtomicU64 = AtomicU64::new(0);
/// The dynamic linker's counters at the last search. Apart from the list: a process that loads and unloads
/// plug-ins all the time moves them without changing what is bound.
static SEEN: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];
static SCANNING: AtomicBool = AtomicBool::new(false);
static EXITING: AtomicBool = AtomicBool::new(false);

/// The libraries that are bound now. Empty before the first search, and once the process exits:
/// libcrypto may be taking itself down then.
#[inline]
#[must_use]
pub fn bound() -> &'static [Bound] {
    current().map_or(&[], |list| &list.bound)
}

/// The library that is bound, where it is the only one, and one that a look reads by itself.
#[inline(always)]
#[must_use]
pub fn only() -> Option<Only> {
    Only::from_word(ONLY.load(Ordering::Acquire))
}

#[inline]
fn current() -> Option<&'static List> {
    // SAFETY: the pointer is null or leads to a `List` that was leaked for the life of the process
    // and is never changed after it was published.
    unsafe { LIST.load(Ordering::Acquire).as_ref() }
}

/// How long a thread waits for a search. A search takes a millisecond; it takes long where a thread is
/// inside dlopen(3), whose lock it needs, and for ever where that thread is the caller. Then the caller
/// goes on, and the search ends when dlopen does.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long [`libraries`] waits, which is asked for by name and not on the path of a task.
const LONG_PATIENCE: Duration = Duration::from_secs(10);
/// How long a guard waits for a search that another thread makes, as long as nothing is bound at all.
const FIRST_PATIENCE: Duration = Duration::from_millis(50);
/// Between two looks at whether a search is over.
const PAUSE: Duration = Duration::from_millis(1);

/// What came of a look at the dynamic linker's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// The list of libraries is up to date.
    Current,
    /// A search is under way.
    Searching,
    /// No thread could be made for a search; a later look may find that one can.
    NoThread,
}

/// All libraries, searching first if something was loaded since the last search. Waits, for
/// ten seconds at most, for a search that is under way: on a machine that is very busy, a thread may need
/// long to begin.
pub fn libraries() -> &'static [&'static Library] {
    wait(LONG_PATIENCE);
    current().map_or(&[], |list| &list.libraries)
}

/// What a guard does about libraries that may be new: as [`look_again`], and waits a moment for
/// another thread's search only if it is the first.
pub fn look_in_passing() {
    let look = look_again();
    if look == Look::Searching && current().is_none() {
        wait(FIRST_PATIENCE);
    }
}

fn wait(patience: Duration) {
    let begun = Instant::now();
    while look_again() == Look::Searching && begun.elapsed() < patience {
        std::thread::sleep(PAUSE);
    }
}

/// Searches if the dynamic linker's list has moved since the last search, and if no other thread is
/// searching; waits for its own search, a second at most.
///
/// Takes the dynamic linker's lock (350 ns when nothing has moved): never on each task.
pub fn look_again() -> Look {
    // Before the first walk of the linker's list, and the first search.
    fork::around(walk::before_fork, walk::after_fork, forked);
    let generation = objects::generation();
    if EXITING.load(Ordering::Relaxed) || is_current(generation) {
        return Look::Current;
    }
    if SCANNING.swap(true, Ordering::AcqRel) {
        return Look::Searching;
    }
    let (done, waiting) = mpsc::channel();
    let search = std::thread::Builder::new().name("sslsweep-bind".to_owned()).spawn(move || {
        let _scanning = Scanning;
        search();
        SEEN[0].store(generation.adds, Ordering::Relaxed);
        SEEN[1].store(generation.subs, Ordering::Relaxed);
        let _ = done.send(());
    });
    let Ok(thread) = search else {
        drop(Scanning);
        return Look::NoThread;
    };
    if waiting.recv_timeout(PATIENCE).is_err() {
        return Look::Searching;
    }
    // Its end gives back what calibration has allocated: a probe's first figures come after.
    let _ = thread.join();
    Look::Current
}

/// Whether nothing has been mapped since the last search, and no library that was refused for want of
/// locks has been given any.
fn is_current(generation: objects::Generation) -> bool {
    let Some(list) = current() else { return false };
    let seen = |place: usize| SEEN[place].load(Ordering::Relaxed);
    (seen(0), seen(1)) == (generation.adds, generation.subs)
        && !list.refused.iter().any(|(_, error)| error.is_mended())
}

/// A search that is under way; dropped also if it panics.
struct Scanning;

impl Drop for Scanning {
    fn drop(&mut self) {
        SCANNING.store(false, Ordering::Release);
    }
}

/// Libraries that were found and cannot be driven, with the reason.
pub fn refused() -> Vec<(std::path::PathBuf, String)> {
    current().map_or_else(Vec::new, |list| {
        list.refused
            .iter()
            .map(|(object, error)| (object.path.clone(), error.to_string()))
            .collect()
    })
}

fn search() {
    let known = bound();
    let mut bound = known.to_vec();
    let mut refused = Vec::new();
    for object in objects::loaded() {
        let known = object
            .segments
            .first()
            .is_some_and(|own| bound.iter().any(|bound| bound.library().contains(own.start)));
        if known {
            continue;
        }
        if bound.len() == MOST {
            refused.push((object, BindError::TooMany));
            break;
        }
        memory::before_binding(object.clone());
        match Library::bind(object.clone()) {
            Ok(Some(library)) => bound.push(Bound::new(Box::leak(Box::new(library)))),
            Ok(None) => {}
            Err(error) => refused.push((object, error)),
        }
    }
    if bound.len() > known.len() {
        // Registered after the libraries' own exit handlers, which their calibration has brought
        // about at the latest, so that it runs before them.
        exit::before_earlier_handlers(stop);
    }
    // A list is leaked for good: only one that says something new.
    let says_something_new = current().is_none_or(|list| {
        list.bound.len() != bound.len()
            || !list
                .refused
                .iter()
                .map(|(object, _)| object)
                .eq(refused.iter().map(|(object, _)| object))
    });
    if says_something_new {
        for (object, error) in &refused {
            tracing::warn!(library = %object.path.display(), %error, "a libcrypto is not swept");
        }
        let libraries = bound.iter().map(Bound::library).collect();
        publish(List { bound, libraries, refused });
    }
}

fn publish(list: List) {
    let only = Only::of(&list.bound);
    ONLY.store(0, Ordering::SeqCst);
    LIST.store(Box::into_raw(Box::new(list)), Ordering::SeqCst);
    ONLY.store(Only::word(only), Ordering::SeqCst);
    // The exit handler may have run meanwhile.
    if EXITING.load(Ordering::SeqCst) {
        stop();
    }
}

/// From now on no guard touches a libcrypto: the process exits.
fn stop() {
    EXITING.store(true, Ordering::SeqCst);
    ONLY.store(0, Ordering::SeqCst);
    LIST.store(std::ptr::null_mut(), Ordering::SeqCst);
}

/// In the child of a fork: a search that another thread was making will never end.
fn forked() {
    walk::in_child();
    SCANNING.store(false, Ordering::Relaxed);
}
