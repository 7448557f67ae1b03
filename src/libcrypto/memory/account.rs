//! The account of one library: live bytes and blocks by source file, and its thread states.

use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

use super::blocks::Block;

/// Stands for blocks whose caller did not name its file.
pub const NO_FILE: &str = "(no file named)";
/// Stands for files that there was no place for.
pub const OTHER_FILES: &str = "(other files)";

/// Places for file names: libcrypto and libssl have about 1,000.
const FILES: usize = 2048;
/// Numbers behind the last place.
const UNNAMED: u16 = FILES as u16;
const OTHER: u16 = UNNAMED + 1;

/// Size classes: 1, 2, 4 ... bytes; the last takes all that is larger.
const CLASSES: usize = 25;

/// Figures of one library's memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Figures {
    /// Bytes that the library has and did not give back, as it asked for them.
    pub live_bytes: u64,
    /// Blocks that these bytes are in.
    pub live_blocks: u64,
    /// How often it has asked for memory, since the start.
    pub allocations: u64,
    /// Thread states alive.
    pub states: u64,
    /// Their bytes.
    pub state_bytes: u64,
    /// Blocks that are not counted, since there was no memory for it.
    pub untracked: u64,
    /// By source file, the most bytes first; without those that have nothing.
    pub files: Vec<FileFigures>,
    /// By size, small ones first; without those that have nothing.
    pub sizes: Vec<SizeClass>,
}

impl Figures {
    /// The figures of one source file, by the name that [`FileFigures::file`] has.
    #[must_use]
    pub fn file(&self, name: &str) -> Option<&FileFigures> {
        self.files.iter().find(|figures| figures.file == name)
    }
}

/// What one source file has asked for and nobody has given back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileFigures {
    /// The file as the library names it, without leading `../`.
    pub file: String,
    /// Bytes.
    pub bytes: u64,
    /// Blocks.
    pub blocks: u64,
}

/// Live blocks of about one size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SizeClass {
    /// Largest size that belongs to it, and larger than half of that; none for the last class.
    pub up_to: Option<u64>,
    /// Blocks.
    pub blocks: u64,
}

/// Live figures, written to by all threads.
pub(super) struct Account {
    files: Box<[File]>,
    sizes: [AtomicU64; CLASSES],
    allocations: AtomicU64,
    states: AtomicU64,
    untracked: AtomicU64,
    state_size: usize,
    /// Whether states are allocated without a file's name.
    unnamed_states: bool,
}

#[derive(Default)]
struct File {
    /// Set once; a place that has a name keeps it.
    name: OnceLock<Name>,
    bytes: AtomicU64,
    blocks: AtomicU64,
}

struct Name {
    text: Box<[u8]>,
    /// Whether it is the file of the error queue.
    is_queue: bool,
}

impl Account {
    pub(super) fn new(state_size: usize, unnamed_states: bool) -> Self {
        Self {
            files: (0..=OTHER).map(|_| File::default()).collect(),
            sizes: [const { AtomicU64::new(0) }; CLASSES],
            allocations: AtomicU64::new(0),
            states: AtomicU64::new(0),
            untracked: AtomicU64::new(0),
            state_size,
            unnamed_states,
        }
    }

    /// The number of a file, and whether a block of `size` bytes that it asks for is a thread state.
    pub(super) fn classify(&self, file: Option<&CStr>, size: usize) -> (u16, bool) {
        let is_size = size == self.state_size;
        let Some(file) = file else { return (UNNAMED, is_size && self.unnamed_states) };
        // Builds outside the source folder name files by the way there.
        let mut name = file.to_bytes();
        while let Some(rest) = name.strip_prefix(b"../") {
            name = rest;
        }
        let (number, is_queue) = self.number(name);
        (number, is_size && is_queue)
    }

    /// By content: one file is named by several addresses, and an address may come to name another.
    fn number(&self, name: &[u8]) -> (u16, bool) {
        let start = hash(name);
        for probe in 0..FILES {
            let number = start.wrapping_add(probe) % FILES;
            let Some(file) = self.files.get(number) else { break };
            // Taken by this name, or by another thread for it meanwhile; else the next place is tried.
            let found = match file.name.get() {
                Some(found) => found,
                None => match copy(name) {
                    Some(text) => {
                        let is_queue = name == b"err.c" || name.ends_with(b"/err.c");
                        file.name.get_or_init(|| Name { text, is_queue })
                    }
                    None => break,
                },
            };
            if *found.text == *name {
                return (number as u16, found.is_queue);
            }
        }
        (OTHER, false)
    }

    pub(super) fn count_allocation(&self) {
        self.allocations.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_untracked(&self) {
        self.untracked.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn allocations(&self) -> u64 {
        self.allocations.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, block: Block) {
        let add = |counter: &AtomicU64, number| {
            counter.fetch_add(number, Ordering::Relaxed);
        };
        self.each(block, add);
    }

    pub(super) fn remove(&self, block: Block) {
        let remove = |counter: &AtomicU64, number| {
            counter.fetch_sub(number, Ordering::Relaxed);
        };
        self.each(block, remove);
    }

    fn each(&self, block: Block, change: impl Fn(&AtomicU64, u64)) {
        if let Some(file) = self.files.get(usize::from(block.file)) {
            change(&file.bytes, block.size as u64);
            change(&file.blocks, 1);
        }
        if let Some(class) = self.sizes.get(class(block.size)) {
            change(class, 1);
        }
        if block.is_state {
            change(&self.states, 1);
        }
    }

    pub(super) fn figures(&self) -> Figures {
        let mut files: Vec<_> = (0..)
            .zip(&self.files)
            .map(|(number, file)| FileFigures {
                file: match number {
                    UNNAMED => NO_FILE.to_owned(),
                    OTHER => OTHER_FILES.to_owned(),
                    _ => file.name.get().map(Name::text).unwrap_or_default(),
                },
                bytes: file.bytes.load(Ordering::Relaxed),
                blocks: file.blocks.load(Ordering::Relaxed),
            })
            .filter(|figures| figures.blocks > 0)
            .collect();
        files.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.file.cmp(&b.file)));
        let states = self.states.load(Ordering::Relaxed);
        Figures {
            live_bytes: files.iter().map(|file| file.bytes).sum(),
            live_blocks: files.iter().map(|file| file.blocks).sum(),
            allocations: self.allocations(),
            states,
            state_bytes: states * self.state_size as u64,
            untracked: self.untracked.load(Ordering::Relaxed),
            files,
            sizes: (0..)
                .zip(&self.sizes)
                .map(|(class, blocks)| SizeClass {
                    up_to: (class + 1 < CLASSES).then(|| 1 << class),
                    blocks: blocks.load(Ordering::Relaxed),
                })
                .filter(|class| class.blocks > 0)
                .collect(),
        }
    }
}

impl Name {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.text).into_owned()
    }
}

/// The class of the smallest power of two that is not below `size`.
fn class(size: usize) -> usize {
    let bits = usize::BITS - size.saturating_sub(1).leading_zeros();
    (bits as usize).min(CLASSES - 1)
}

/// FNV-1a: a file's name is short, and this is done at each allocation.
fn hash(name: &[u8]) -> usize {
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    (hash >> 32) as usize
}

/// A copy, if there is memory for it: a memory function must not abort the process for want of it.
fn copy(name: &[u8]) -> Option<Box<[u8]>> {
    let mut text = Vec::new();
    text.try_reserve_exact(name.len()).ok()?;
    text.extend_from_slice(name);
    Some(text.into_boxed_slice())
}
