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
use super::look::Bound;
use super::memory;
use crate::sys::{exit, objects};

/// More libraries than this are not bound; a guard keeps a few bytes for each.
pub const MOST: usize = 16;

struct List {
    bound: Vec<Bound>,
    libraries: Vec<&'static Library>,
    refused: Vec<(objects::Object, BindError)>,
    generation: objects::Generation,
}

static LIST: AtomicPtr<List> = AtomicPtr::new(std::ptr::null_mut());
static SCANNING: AtomicBool = AtomicBool::new(false);
static EXITING: AtomicBool = AtomicBool::new(false);
static SCANS: AtomicU64 = AtomicU64::new(0);

/// The libraries that are bound now. Empty before the first search, and once the process exits:
/// libcrypto may be taking itself down then.
#[inline]
#[must_use]
pub fn bound() -> &'static [Bound] {
    current().map_or(&[], |list| &list.bound)
}

#[inline]
fn current() -> Option<&'static List> {
    // SAFETY: the pointer is null or leads to a `List` that was leaked for the life of the process
    // and is never changed after it was published.
    unsafe { LIST.load(Ordering::Acquire).as_ref() }
}

/// How long a thread waits for a search. A search takes a millisecond; it takes for ever where the
/// caller is in an object's initialiser, because dlopen(3) holds the dynamic linker's lock meanwhile.
/// Then the caller goes on, and the search ends when dlopen does.
const PATIENCE: Duration = Duration::from_secs(1);

/// All libraries, searching first if something was loaded since the last search. Waits, for
/// a second at most, for a search that is under way.
pub fn libraries() -> &'static [&'static Library] {
    let begun = Instant::now();
    while !look_again() && begun.elapsed() < PATIENCE {
        std::thread::yield_now();
    }
    current().map_or(&[], |list| &list.libraries)
}

/// Searches if the dynamic linker's list has moved since the last search, and if no other thread is
/// searching; returns whether the list is up to date.
///
/// Takes the dynamic linker's lock (350 ns when nothing has moved): never on each task.
pub fn look_again() -> bool {
    let generation = objects::generation();
    if EXITING.load(Ordering::Relaxed)
        || current().is_some_and(|list| list.generation == generation)
    {
        return true;
    }
    if SCANNING.swap(true, Ordering::AcqRel) {
        return false;
    }
    let (done, waiting) = mpsc::channel();
    let search = std::thread::Builder::new().name("sslsweep-bind".to_owned()).spawn(move || {
        search(generation);
        SCANNING.store(false, Ordering::Release);
        let _ = done.send(());
    });
    match search {
        Ok(thread) => {
            let done = waiting.recv_timeout(PATIENCE).is_ok();
            if done {
                // Its end gives back what calibration has allocated: a probe's first figures come after.
                let _ = thread.join();
            }
            done
        }
        Err(_) => {
            // No thread can be made now; a later look may find that one can.
            SCANNING.store(false, Ordering::Release);
            false
        }
    }
}

/// How often the list was searched.
#[must_use]
pub fn searches() -> u64 {
    SCANS.load(Ordering::Relaxed)
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

fn search(generation: objects::Generation) {
    SCANS.fetch_add(1, Ordering::Relaxed);
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
    let libraries = bound.iter().map(Bound::library).collect();
    publish(List { bound, libraries, refused, generation });
}

fn publish(list: List) {
    if !EXITING.load(Ordering::SeqCst) {
        LIST.store(Box::into_raw(Box::new(list)), Ordering::Release);
    }
}

/// From now on no guard touches a libcrypto: the process exits.
fn stop() {
    EXITING.store(true, Ordering::SeqCst);
    LIST.store(std::ptr::null_mut(), Ordering::Release);
}

/// In the child of a fork: a search that another thread was making will never end.
pub fn forked() {
    SCANNING.store(false, Ordering::Relaxed);
}
