//! Things that one thread uses at a time: connections.

use std::cell::UnsafeCell;
use std::ops::Deref;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use jni::sys::jlong;

use super::table::Table;
use super::{GENERATION_SHIFT, Kind, LAST_GENERATION, Parts};

/// In place of the number of a thread: there is nothing in the slot.
const EMPTY: u64 = (1 << GENERATION_SHIFT) - 1;
const OWNER: u64 = EMPTY;

/// Numbers of a connection that Java asks for far more often than they change: read without taking the
/// connection.
#[derive(Debug, Default)]
pub(crate) struct Facts([AtomicI32; 3]);

/// Which of the [`Facts`].
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fact {
    /// Bytes that can be read without more from the network.
    Readable = 0,
    /// Bytes that wait to be sent.
    ToSend = 1,
    /// As `SSL_get_shutdown` says.
    Shutdown = 2,
}

impl Facts {
    pub(crate) fn set(&self, fact: Fact, value: i32) {
        let [readable, to_send, shutdown] = &self.0;
        let place = match fact {
            Fact::Readable => readable,
            Fact::ToSend => to_send,
            Fact::Shutdown => shutdown,
        };
        place.store(value, Ordering::Relaxed);
    }

    #[inline(always)]
    fn get(&self, fact: Fact) -> i32 {
        let [readable, to_send, shutdown] = &self.0;
        let place = match fact {
            Fact::Readable => readable,
            Fact::ToSend => to_send,
            Fact::Shutdown => shutdown,
        };
        place.load(Ordering::Relaxed)
    }
}

/// A slot: generation and the kernel's number of the thread that uses it, 0 for none, in one word.
struct Slot<T> {
    word: AtomicU64,
    facts: Facts,
    value: UnsafeCell<Option<Value<T>>>,
}

struct Value<T> {
    content: Box<T>,
    /// It was freed by a native that runs inside another one on the same thread: it goes when that is left.
    doomed: std::cell::Cell<bool>,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self {
            word: AtomicU64::new(1 << GENERATION_SHIFT | EMPTY),
            facts: Facts::default(),
            value: UnsafeCell::new(None),
        }
    }
}

// SAFETY: the value is touched only by the thread whose number is in the word, or while the slot is free by the
// one that took it from there; the word's orderings hand it on.
unsafe impl<T: Send> Sync for Slot<T> {}

/// Things of one kind, by handle.
pub(crate) struct Exclusive<T> {
    table: Table<Slot<T>>,
}

/// One that the calling thread uses. Natives that run inside another one on the same thread have it too, so that
/// it is only lent.
pub(crate) struct Held<'a, T> {
    slots: &'a Exclusive<T>,
    slot: &'a Slot<T>,
    value: &'a Value<T>,
    parts: Parts,
    /// A native further out on this thread's stack has it as well.
    inner: bool,
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value.content
    }
}

impl<T> Held<'_, T> {
    pub(crate) fn facts(&self) -> &Facts {
        &self.slot.facts
    }

    /// Whether this native runs inside another one that uses it, in a callback.
    pub(crate) fn is_inner(&self) -> bool {
        self.inner
    }

    /// Frees it, as soon as no native further out uses it.
    pub(crate) fn free(self) {
        self.value.doomed.set(true);
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline]
    fn drop(&mut self) {
        if self.inner {
            return;
        }
        if self.value.doomed.get() {
            self.slots.empty(self.parts, self.slot);
        } else {
            self.slot.word.store(self.parts.generation << GENERATION_SHIFT, Ordering::Release);
        }
    }
}

impl<T> Exclusive<T> {
    pub(crate) const fn new() -> Self {
        Self { table: Table::new() }
    }

    /// Puts something in; returns its handle of the given kind. Nothing where there is no room for more.
    pub(crate) fn add(&self, kind: Kind, value: Box<T>) -> Option<jlong> {
        let (index, slot) = self.table.take()?;
        for fact in [Fact::Readable, Fact::ToSend, Fact::Shutdown] {
            slot.facts.set(fact, 0);
        }
        let value = Value { content: value, doomed: std::cell::Cell::new(false) };
        // SAFETY: the slot was taken from the free ones; others leave the value of an empty one alone.
        unsafe { *slot.value.get() = Some(value) };
        let generation = slot.word.load(Ordering::Relaxed) >> GENERATION_SHIFT;
        slot.word.store(generation << GENERATION_SHIFT, Ordering::Release);
        Some(Parts { slot: index, generation }.handle(kind))
    }

    /// The other handle of the same thing.
    pub(crate) fn as_kind(handle: jlong, from: Kind, to: Kind) -> Option<jlong> {
        Parts::of(handle, from).map(|parts| parts.handle(to))
    }

    /// What a handle names, for the calling thread alone; waits while another thread has it. Nothing where it names
    /// nothing of this kind (any more).
    #[inline]
    pub(crate) fn hold(&self, handle: jlong, kind: Kind) -> Option<Held<'_, T>> {
        let parts = Parts::of(handle, kind)?;
        let slot = self.table.get(parts.slot)?;
        let inner = take(&slot.word, parts.generation)?;
        self.held(slot, parts, inner)
    }

    #[inline]
    fn held<'a>(&'a self, slot: &'a Slot<T>, parts: Parts, inner: bool) -> Option<Held<'a, T>> {
        // SAFETY: the word has the calling thread's number: no other thread touches the value until it is given
        // back, and this one only lends it.
        let value = unsafe { &*slot.value.get() };
        let value = value.as_ref()?;
        Some(Held { slots: self, slot, value, parts, inner })
    }

    /// A fact of what a handle names, without taking it.
    #[inline(always)]
    pub(crate) fn fact(&self, handle: jlong, kind: Kind, fact: Fact) -> Option<i32> {
        let parts = Parts::of(handle, kind)?;
        let slot = self.table.get(parts.slot)?;
        let value = slot.facts.get(fact);
        let word = slot.word.load(Ordering::Acquire);
        (word >> GENERATION_SHIFT == parts.generation && word & OWNER != EMPTY).then_some(value)
    }

    /// Takes everything out, waiting for those that are in use.
    pub(crate) fn clear(&self) {
        for (index, slot) in self.table.used() {
            let word = slot.word.load(Ordering::Acquire);
            let parts = Parts { slot: index, generation: word >> GENERATION_SHIFT };
            if word & OWNER != EMPTY
                && let Some(inner) = take(&slot.word, parts.generation)
                && let Some(held) = self.held(slot, parts, inner)
            {
                held.free();
            }
        }
    }

    #[cold]
    fn empty(&self, parts: Parts, slot: &Slot<T>) {
        // SAFETY: the word has the calling thread's number, and no native further out has it.
        let value = unsafe { (*slot.value.get()).take() };
        // While the number is still there: what it drops may not be found by others.
        drop(value);
        let generation = parts.generation + 1;
        slot.word.store(generation << GENERATION_SHIFT | EMPTY, Ordering::Release);
        if generation <= LAST_GENERATION {
            self.table.give_back(parts.slot);
        }
    }
}

/// Puts the calling thread's number into a word; returns whether it was there already. Nothing where the
/// generation is another.
#[inline]
fn take(word: &AtomicU64, generation: u64) -> Option<bool> {
    let idle = generation << GENERATION_SHIFT;
    let own = u64::from(thread_number());
    match word.compare_exchange(idle, idle | own, Ordering::Acquire, Ordering::Relaxed) {
        Ok(_) => Some(false),
        Err(found) if found == idle | own => Some(true),
        Err(_) => wait(word, idle, own),
    }
}

/// Java uses a connection in one thread at a time; this is for when it does not.
#[cold]
#[inline(never)]
fn wait(word: &AtomicU64, idle: u64, own: u64) -> Option<bool> {
    for turn in 0_u32.. {
        match word.compare_exchange(idle, idle | own, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return Some(false),
            Err(found) if found >> GENERATION_SHIFT != idle >> GENERATION_SHIFT => return None,
            Err(found) if found & OWNER == EMPTY => return None,
            Err(_) if turn < 100 => thread::yield_now(),
            Err(_) => thread::sleep(Duration::from_micros(100)),
        }
    }
    None
}

/// The kernel's number of the calling thread: 22 bits, which are not [`EMPTY`].
#[inline]
fn thread_number() -> u32 {
    thread_local!(static NUMBER: std::cell::Cell<u32> = const { std::cell::Cell::new(0) });
    NUMBER.with(|number| {
        if number.get() == 0 {
            // SAFETY: gettid(2) takes nothing and cannot fail.
            number.set(unsafe { libc::gettid() }.cast_unsigned());
        }
        number.get()
    })
}
