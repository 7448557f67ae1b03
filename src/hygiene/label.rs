//! Names of tasks, each kept once for the life of the process.
//!
//! The table is bounded: a label that comes after [`MOST`] others counts as `(other labels)`. Nobody
//! waits in it for another thread, so that a fork at any moment leaves it usable in the child.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU16, Ordering};

use super::thread;

/// So many labels are told apart.
pub(super) const MOST: usize = 255;
/// Slots of the hash table: twice as many, so that probing stays short.
const SLOTS: usize = 2 * (MOST + 1);
/// The label of all labels after the table was full.
const OTHER: Label = Label(0);

/// A task's name: a small number behind which the text is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(u16);

/// Numbers of labels by the hash of their texts, 0 where there is none: [`OTHER`] has no slot.
static SLOT: [AtomicU16; SLOTS] = [const { AtomicU16::new(0) }; SLOTS];
/// Each is set once, by the thread that was given its number, before the number is in a slot.
static TEXT: [OnceLock<Box<str>>; MOST + 1] = [const { OnceLock::new() }; MOST + 1];
static NEXT: AtomicU16 = AtomicU16::new(1);

impl Label {
    /// The label of a text that is made at run time. Takes about 20 ns; a `&'static str` is converted
    /// faster, by its address.
    #[must_use]
    pub fn intern(text: &str) -> Self {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(text);
        let start = usize::try_from(hash % SLOTS as u64).unwrap_or(0);
        let mut own = None;
        for probe in 0..SLOTS {
            let Some(slot) = SLOT.get((start + probe) % SLOTS) else { return OTHER };
            let mut taken = slot.load(Ordering::Acquire);
            if taken == 0 {
                let Some(label) = own.or_else(|| new(text)) else { return OTHER };
                own = Some(label);
                match slot.compare_exchange(0, label.0, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => return label,
                    // Another thread was faster, perhaps for the same text; a number may be lost here.
                    Err(other) => taken = other,
                }
            }
            if Self(taken).text() == text {
                return Self(taken);
            }
        }
        OTHER
    }

    /// The name.
    #[must_use]
    pub fn text(self) -> &'static str {
        TEXT.get(usize::from(self.0)).and_then(OnceLock::get).map_or("(other labels)", |text| text)
    }

    #[inline]
    pub(crate) fn number(self) -> usize {
        usize::from(self.0)
    }

    /// The label that has `number`; that of the rest, where none has.
    #[inline]
    pub(crate) fn numbered(number: i32) -> Self {
        match u16::try_from(number) {
            Ok(number) if number < NEXT.load(Ordering::Relaxed) => Self(number),
            _ => OTHER,
        }
    }

    /// The label behind a number that [`Label::number`] gave.
    #[inline]
    pub(super) fn from_number(number: u16) -> Self {
        Self(number)
    }

    /// All labels that were interned, and the one for the rest.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let next = NEXT.load(Ordering::Acquire).min(MOST as u16 + 1);
        (0..next).map(Self)
    }
}

fn new(text: &str) -> Option<Label> {
    let number = NEXT
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, |next| {
            (usize::from(next) <= MOST).then_some(next + 1)
        })
        .ok()?;
    TEXT.get(usize::from(number))?.set(text.into()).ok()?;
    Some(Label(number))
}

impl From<&'static str> for Label {
    /// Looks the label up by the text's address, in a small cache of the calling thread.
    #[inline]
    fn from(text: &'static str) -> Self {
        thread::label(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_labels_ends_in_one_for_the_rest() {
        let first = Label::intern("first");
        for number in 0..100_000 {
            let _ = Label::intern(&format!("label {number}"));
        }
        assert_eq!(first.text(), "first");
        assert_eq!(Label::intern("first"), first);
        assert_eq!(Label::from("first"), first);
        assert_eq!(Label::intern("late").text(), "(other labels)");
        assert_eq!(Label::all().count(), MOST + 1);
    }

    #[test]
    fn threads_agree_on_a_label() {
        let labels: Vec<_> = (0..8)
            .map(|_| std::thread::spawn(|| Label::intern("agreed")))
            .map(|thread| thread.join().unwrap())
            .collect();
        assert!(labels.iter().all(|label| *label == labels[0]));
    }
}
