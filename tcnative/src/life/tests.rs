//! In processes of their own: others' connections would go with the library, and others' memory would be counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{c_char, c_int, c_void};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::{initialize, initialize_ssl, terminate};
use crate::connection::pair::{Pair, TLS_1_2, TLS_1_3, client, server};
use crate::context::{CONTEXTS, Context};
use crate::ffi;
use crate::pool;
use crate::queue::take_last;

/// Set where this is such a process.
const ALONE: &str = "SSLSWEEP_TEST_ALONE";
/// Finds errors in what it runs, and leaks.
const VALGRIND: [&str; 6] = [
    "valgrind",
    "--quiet",
    "--error-exitcode=99",
    "--leak-check=full",
    "--show-leak-kinds=definite,indirect",
    "--errors-for-leak-kinds=definite,indirect",
];

/// Runs a test again as a process of its own, by a command that runs it, and fails as it does; true in that process.
fn alone(test: &str, by: &[&str]) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let this = std::env::current_exe().unwrap();
    let mut command = by.first().map_or_else(|| Command::new(&this), Command::new);
    if let Some((_, options)) = by.split_first() {
        command.args(options).arg(&this);
    }
    let output =
        command.args(["--exact", test, "--nocapture"]).env(ALONE, "1").output().unwrap_or_else(
            |error| panic!("cannot run {command:?}: {error}; `make setup` installs it"),
        );
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    assert!(said.contains("1 passed"), "{said}");
    false
}

fn converse(pair: &Pair) {
    let body = [7; 4096];
    assert!(pair.handshake());
    assert_eq!(pair.send(pair.client, pair.server, &body, 4096), body);
    assert_eq!(pair.send(pair.server, pair.client, &body, 4096), body);
}

/// One life of the library, which ends while there are a pool, a context and a connection.
fn live(clients: &Arc<Context>, serves: &Arc<Context>) {
    initialize();
    initialize_ssl().unwrap();
    let pool = pool::create(0).unwrap();
    let context = CONTEXTS.add(Arc::clone(serves)).unwrap();
    assert!(pool::get(pool).unwrap().add(pool::Owned::Context(context)));
    let pair = Pair::new(clients, serves, 4096);
    converse(&pair);
    terminate();
    assert!(pool::get(pool).is_none());
    assert!(CONTEXTS.get(context).is_none());
    assert!(crate::connection::get(pair.server.ssl).is_err());
}

/// Bytes that Rust and OpenSSL have and have not given back: malloc's own figures count its caches.
static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: the system's allocator, and a sum beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's.
        unsafe { System.dealloc(pointer, layout) };
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

unsafe extern "C" fn counted_malloc(size: usize, _: *const c_char, _: c_int) -> *mut c_void {
    // SAFETY: any size will do.
    let block = unsafe { libc::malloc(size) };
    // SAFETY: malloc's, or null.
    ALLOCATED.fetch_add(unsafe { libc::malloc_usable_size(block) }, Ordering::Relaxed);
    block
}

unsafe extern "C" fn counted_realloc(
    block: *mut c_void,
    size: usize,
    _: *const c_char,
    _: c_int,
) -> *mut c_void {
    // SAFETY: malloc's, or null.
    ALLOCATED.fetch_sub(unsafe { libc::malloc_usable_size(block) }, Ordering::Relaxed);
    // SAFETY: as above.
    let block = unsafe { libc::realloc(block, size) };
    // SAFETY: as above.
    ALLOCATED.fetch_add(unsafe { libc::malloc_usable_size(block) }, Ordering::Relaxed);
    block
}

unsafe extern "C" fn counted_free(block: *mut c_void, _: *const c_char, _: c_int) {
    // SAFETY: malloc's, or null.
    ALLOCATED.fetch_sub(unsafe { libc::malloc_usable_size(block) }, Ordering::Relaxed);
    // SAFETY: as above.
    unsafe { libc::free(block) };
}

/// Counts what OpenSSL allocates; before it has allocated anything.
fn count_openssl() {
    // SAFETY: functions as CRYPTO_set_mem_functions(3) wants them.
    let set = unsafe {
        ffi::CRYPTO_set_mem_functions(
            Some(counted_malloc),
            Some(counted_realloc),
            Some(counted_free),
        )
    };
    assert_eq!(set, 1, "OpenSSL has allocated something already");
}

fn counted() -> usize {
    ALLOCATED.load(Ordering::Relaxed)
}

/// The key that the next one who asks for one gets: the lowest that is free.
fn next_key() -> libc::pthread_key_t {
    let mut key = 0;
    // SAFETY: the key is written to a live place; there is no destructor.
    assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, None) }, 0);
    // SAFETY: made above.
    assert_eq!(unsafe { libc::pthread_key_delete(key) }, 0);
    key
}

#[test]
fn cycles_need_no_more_memory_and_no_more_keys() {
    if !alone("life::tests::cycles_need_no_more_memory_and_no_more_keys", &[]) {
        return;
    }
    const CYCLES: usize = 3000;
    count_openssl();
    initialize();
    initialize_ssl().unwrap();
    let contexts = [TLS_1_2, TLS_1_3].map(|protocol| (client(protocol), server(protocol)));
    let run = |cycles: usize| {
        for cycle in 0..cycles {
            let (clients, serves) = &contexts[cycle % contexts.len()];
            live(clients, serves);
        }
    };
    run(20);
    let before = (counted(), next_key());
    run(CYCLES);
    let after = (counted(), next_key());
    assert_eq!(after, before, "what is allocated, and the next thread key");
}

#[test]
fn valgrind_finds_nothing_in_a_start_a_thousand_connections_and_a_stop() {
    let name = "life::tests::valgrind_finds_nothing_in_a_start_a_thousand_connections_and_a_stop";
    if !alone(name, &VALGRIND) {
        return;
    }
    const THREADS: usize = 4;
    const CONNECTIONS: usize = 1000;
    initialize();
    initialize_ssl().unwrap();
    let contexts = [TLS_1_2, TLS_1_3].map(|protocol| (client(protocol), server(protocol)));
    let contexts = &contexts;
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(move || {
                for number in 0..CONNECTIONS / THREADS {
                    let (clients, serves) = &contexts[number % contexts.len()];
                    let pair = Pair::new(clients, serves, 4096);
                    converse(&pair);
                    if number % 3 == 0 {
                        pair.client.shut_down();
                        pair.exchange();
                        assert!(pair.server.read(1).is_empty());
                    }
                    // Some are left for `terminate`.
                    if number % 10 != 0 {
                        pair.free();
                    }
                    assert_eq!(take_last(), 0);
                }
            });
        }
    });
    terminate();
}
