//! Case 24: thread error data leaks or not, depending on which library made its thread key first.

use std::ffi::c_void;
use std::sync::OnceLock;

use sslsweep::hygiene;
use sslsweep::libcrypto::Library;
use sslsweep::probe::left_after_exit;
use sslsweep_libssl::Tls;

use crate::common::{LINES, Outcome, in_processes, load};

static LIBRARY: OnceLock<&'static Library> = OnceLock::new();

/// The application's destructor: touches the error queue, at a time when libcrypto's own destructor
/// has not run yet, or has.
unsafe extern "C" fn touches_the_queue(_: *mut c_void) {
    if let Some(library) = LIBRARY.get() {
        library.raise(128, 1, c"destructor", 1);
        library.clear();
    }
}

fn key() -> libc::pthread_key_t {
    let mut key = 0;
    // SAFETY: a valid place, and a destructor that lives as long as the process.
    let made = unsafe { libc::pthread_key_create(&raw mut key, Some(touches_the_queue)) };
    assert_eq!(made, 0);
    key
}

fn arm(key: libc::pthread_key_t) {
    // SAFETY: the key was made by `key` and is never deleted; nobody follows the value.
    assert_eq!(unsafe { libc::pthread_setspecific(key, std::ptr::without_provenance(1)) }, 0);
}

fn check(tls: &'static Tls, key: libc::pthread_key_t, order: &str) -> Outcome {
    let library = tls.library();
    LIBRARY.get_or_init(|| library);
    let left = left_after_exit(library, 200, || {
        arm(key);
        hygiene::run("work", || library.clear());
    })?;
    println!("measured: {order}: {left}");
    assert_eq!((left.states, left.blocks, left.bytes), (0, 0, 0), "{order}");
    Ok(())
}

#[test]
fn nothing_is_left_when_the_application_makes_its_key_first() -> Outcome {
    in_processes(&LINES, |line| {
        let own = key();
        check(load(line)?, own, "own key first")
    })
}

#[test]
fn nothing_is_left_when_libcrypto_makes_its_key_first() -> Outcome {
    in_processes(&LINES, |line| {
        let tls = load(line)?;
        // Its keys are made on first use, and so is that of hygiene.
        hygiene::run("first", || tls.library().clear());
        check(tls, key(), "libcrypto's key first")
    })
}
