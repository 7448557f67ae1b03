//! The memory functions, called as a libcrypto calls them. Each test has an account of its own, from
//! the last places on, which no library of the test process gets.

use std::ffi::CStr;
use std::ffi::CString;
use std::ptr::null;

use super::functions::{ACCOUNTS, FUNCTIONS, free_1_0, stopped};
use super::*;

const STATE: usize = 600;

/// A libcrypto, as far as memory is concerned.
#[derive(Clone, Copy)]
struct Caller(usize);

impl Caller {
    fn new(slot: usize, unnamed_states: bool) -> Self {
        let new = || Box::new(Account::new(STATE, unnamed_states));
        ACCOUNTS[slot].get_or_init(new);
        Self(slot)
    }

    fn malloc(self, size: usize, file: &CStr) -> usize {
        // SAFETY: the file's name is a text.
        unsafe { (FUNCTIONS[self.0].malloc)(size, file.as_ptr(), 1) as usize }
    }

    fn unnamed(self, size: usize) -> usize {
        // SAFETY: null is a name that is not given.
        unsafe { (FUNCTIONS[self.0].malloc)(size, null(), 0) as usize }
    }

    fn realloc(self, block: usize, size: usize, file: &CStr) -> usize {
        // SAFETY: tests pass blocks that they own; the file's name is a text.
        unsafe {
            (FUNCTIONS[self.0].realloc)(block as *mut c_void, size, file.as_ptr(), 1) as usize
        }
    }

    fn free(self, block: usize) {
        // SAFETY: tests pass blocks that they own.
        unsafe { functions::free(block as *mut c_void, null(), 0) }
    }

    fn figures(self) -> Figures {
        ACCOUNTS[self.0].get().unwrap().figures()
    }

    fn file(self, name: &str) -> Option<(u64, u64)> {
        self.figures().file(name).map(|file| (file.bytes, file.blocks))
    }
}

#[test]
fn blocks_are_counted_by_the_content_of_the_files_name() {
    let caller = Caller::new(15, false);
    // One name at three addresses, one of them by way of the build folder.
    let copies = [c"crypto/a.c".to_owned(), c"crypto/a.c".to_owned(), c"../crypto/a.c".to_owned()];
    let blocks: Vec<_> = copies.iter().map(|name| caller.malloc(100, name)).collect();
    assert_eq!(caller.file("crypto/a.c"), Some((300, 3)));
    let unnamed = caller.unnamed(7);
    assert_eq!(caller.file(NO_FILE), Some((7, 1)));
    assert_eq!(caller.figures().live_bytes, 307);
    assert_eq!(caller.figures().allocations, 4);
    let sizes = caller.figures().sizes;
    assert_eq!(
        sizes,
        [SizeClass { up_to: Some(8), blocks: 1 }, SizeClass { up_to: Some(128), blocks: 3 }]
    );
    for block in blocks.into_iter().chain([unnamed]) {
        caller.free(block);
    }
    let left = Figures { allocations: 4, ..Figures::default() };
    assert_eq!(caller.figures(), left);
}

#[test]
fn realloc_moves_the_account_with_the_block() {
    let caller = Caller::new(14, false);
    let block = caller.realloc(0, 10, c"first.c");
    assert_eq!(caller.file("first.c"), Some((10, 1)));
    // SAFETY: a block of 10 bytes.
    unsafe { (block as *mut [u8; 10]).write(*b"0123456789") };
    let block = caller.realloc(block, 100_000, c"second.c");
    // SAFETY: a block of 100,000 bytes, of which the first ten were written.
    assert_eq!(unsafe { (block as *const [u8; 10]).read() }, *b"0123456789");
    assert_eq!((caller.file("first.c"), caller.file("second.c")), (None, Some((100_000, 1))));
    assert_eq!(caller.realloc(block, usize::MAX / 2, c"third.c"), 0, "nobody has that much");
    assert_eq!((caller.file("second.c"), caller.file("third.c")), (Some((100_000, 1)), None));
    assert_eq!(caller.realloc(block, 0, c"second.c"), 0);
    assert_eq!(caller.figures().live_blocks, 0);
    assert_eq!(caller.malloc(0, c"first.c"), 0);
    assert_eq!(caller.realloc(0, 0, c"first.c"), 0);
    caller.free(0);
    // A block that libcrypto never got from these functions, such as one of strdup(3).
    let strange = heap::malloc(32);
    let strange = caller.realloc(strange as usize, 64, c"first.c");
    assert_eq!(caller.file("first.c"), Some((64, 1)));
    // SAFETY: the block is the test's; this is how 1.0.x frees.
    unsafe { free_1_0(strange as *mut c_void) };
    assert_eq!(caller.figures().live_blocks, 0);
}

#[test]
fn states_are_counted_by_file_and_size() {
    let named = Caller::new(13, false);
    let states = ["err.c", "crypto/err/err.c", "../crypto/err/err.c"]
        .map(|name| named.malloc(STATE, &CString::new(name).unwrap()));
    let others = [
        named.malloc(STATE + 1, c"err.c"),
        named.malloc(STATE, c"ssl_err.c"),
        named.malloc(STATE, c"err.cc"),
        named.unnamed(STATE),
    ];
    assert_eq!(named.figures().states, 3);
    assert_eq!(named.figures().state_bytes, 3 * STATE as u64);
    states.into_iter().for_each(|block| named.free(block));
    assert_eq!(named.figures().states, 0);
    others.into_iter().for_each(|block| named.free(block));

    let unnamed = Caller::new(12, true);
    let state = unnamed.unnamed(STATE);
    assert_eq!(unnamed.figures().states, 1);
    unnamed.free(state);
    assert_eq!(unnamed.figures().states, 0);
}

#[test]
fn what_is_freed_without_these_functions_is_noticed_when_its_address_comes_again() {
    let caller = Caller::new(11, false);
    let mut noticed = false;
    for _ in 0..1000 {
        let block = caller.malloc(48, c"gone.c");
        // SAFETY: the block is the test's, and has no header.
        unsafe { heap::free(block as *mut c_void) };
        let again = caller.malloc(48, c"again.c");
        let same = again == block;
        if same {
            assert_eq!((caller.file("gone.c"), caller.file("again.c")), (None, Some((48, 1))));
        }
        caller.free(again);
        noticed |= same;
        if noticed {
            return;
        }
    }
    panic!("the C library gave no address out again");
}

#[test]
fn more_files_than_there_are_places_for_are_one() {
    let caller = Caller::new(10, false);
    let blocks: Vec<_> = (0..5000)
        .map(|number| caller.malloc(8, &CString::new(format!("file-{number}.c")).unwrap()))
        .collect();
    let figures = caller.figures();
    assert_eq!(figures.live_bytes, 40_000);
    assert_eq!(figures.files.len(), 2049);
    assert_eq!(figures.file(OTHER_FILES).unwrap().blocks, 5000 - 2048);
    for block in blocks {
        caller.free(block);
    }
    assert_eq!(caller.figures().live_bytes, 0);
}

#[test]
fn threads_that_free_each_others_blocks_leave_nothing() {
    let caller = Caller::new(9, false);
    let (here, there) = std::sync::mpsc::sync_channel::<usize>(64);
    let there = std::sync::Arc::new(Mutex::new(there));
    let freeing: Vec<_> = (0..2)
        .map(|_| {
            let there = std::sync::Arc::clone(&there);
            std::thread::spawn(move || {
                let next = || there.lock().unwrap().recv();
                while let Ok(block) = next() {
                    caller.free(block);
                }
            })
        })
        .collect();
    let getting: Vec<_> = (0..4)
        .map(|seed: usize| {
            let here = here.clone();
            std::thread::spawn(move || {
                let name = CString::new(format!("thread-{seed}.c")).unwrap();
                let before = allocations_here();
                for round in 1..=10_000_usize {
                    let block = caller.malloc(round % 900 + 1, &name);
                    let block = caller.realloc(block, round % 700 + 1, &name);
                    here.send(block).unwrap();
                }
                assert_eq!(allocations_here() - before, 20_000);
            })
        })
        .collect();
    drop(here);
    for thread in getting.into_iter().chain(freeing) {
        thread.join().unwrap();
    }
    assert_eq!(caller.figures(), Figures { allocations: 80_000, ..Figures::default() });
}

#[test]
fn in_the_child_of_a_fork_memory_goes_on_and_counting_does_not() {
    let caller = Caller::new(8, false);
    assert!(fork::on_child(functions::stop));
    let block = caller.malloc(10, c"parent.c");
    // A thread that works through the shards' locks all the time, so that one may be held.
    let (done, ask) = std::sync::mpsc::channel::<()>();
    let busy = std::thread::spawn(move || {
        while ask.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
            caller.free(caller.malloc(10, c"busy.c"));
        }
    });
    for _ in 0..50 {
        assert!(fork::child_says(|| {
            let counted = stopped();
            let block = caller.realloc(block, 5000, c"child.c");
            let other = caller.malloc(10, c"child.c");
            caller.free(block);
            caller.free(other);
            counted && block != 0 && other != 0 && caller.file("child.c").is_none()
        }));
    }
    drop(done);
    busy.join().unwrap();
    assert_eq!(caller.file("parent.c"), Some((10, 1)), "the parent goes on");
    caller.free(block);
}

#[test]
fn errno_is_left_alone() {
    let caller = Caller::new(7, false);
    assert!(std::fs::File::open("/no/such/file").is_err());
    let before = std::io::Error::last_os_error().raw_os_error();
    for number in 0..1000 {
        caller.free(caller.malloc(number, c"errno.c"));
    }
    assert_eq!(std::io::Error::last_os_error().raw_os_error(), before);
}
