//! Case 22: a runtime starts and ends threads at will, detached, and nobody frees their states.

use std::sync::mpsc;

use sslsweep::libcrypto::Library;
use sslsweep::sys::thread;
use sslsweep::{Release, Task, hygiene};

use crate::common::{LINES, Outcome, figures, on_each, until};

/// Makes a key and deletes it: the number is that of the next key that the process makes.
fn next_key() -> libc::pthread_key_t {
    let mut key = 0;
    // SAFETY: a valid place, and no destructor.
    assert_eq!(unsafe { libc::pthread_key_create(&raw mut key, None) }, 0);
    // SAFETY: the key was made above and is nobody else's.
    assert_eq!(unsafe { libc::pthread_key_delete(key) }, 0);
    key
}

/// Threads that nobody joins work one after another, and are waited for until the kernel has none of them.
fn detached(threads: usize, library: &'static Library, work: fn(&'static Library)) -> Outcome {
    let before = thread::count();
    for _ in 0..threads {
        let (done, wait) = mpsc::channel();
        drop(std::thread::Builder::new().spawn(move || {
            work(library);
            let _ = done.send(());
        })?);
        wait.recv()?;
    }
    until(|| thread::count() <= before);
    Ok(())
}

/// A task that ends without a release, after which the thread uses the library once more.
fn late_user(library: &'static Library) {
    hygiene::run(Task::new("goroutine").release(Release::ThreadExit), || library.clear());
    library.clear();
}

#[test]
fn detached_threads_leave_no_state_and_only_1_0_2_costs_a_key() -> Outcome {
    on_each(&LINES, |tls| {
        let library = tls.library();
        let is_1_0 = library.shares_states();
        // The control: without hygiene the state of a thread stays on 1.0.2. All have the id of the
        // first, whose stack they get, and so take its state over: one in all.
        let before = figures(tls)?.states;
        detached(100, library, Library::clear)?;
        let left = figures(tls)?.states - before;
        assert_eq!(left > 0, is_1_0, "{left} left");

        let before = figures(tls)?.states;
        // The first use of the shim costs a key without a destructor, on each line and once.
        hygiene::park();
        let key = next_key();
        detached(100, library, late_user)?;
        let after = figures(tls)?.states;
        println!(
            "measured: {left} states left without hygiene, {} with",
            after.saturating_sub(before)
        );
        assert!(after <= before, "{after} after, {before} before");
        // 1.1.0 and later free the state themselves: no destructor of ours.
        assert_eq!(next_key() != key, is_1_0);
        Ok(())
    })
}
