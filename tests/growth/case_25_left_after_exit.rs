//! Case 25: clean-up at thread exit relies on an order of keys that no standard promises; a program
//! with threads loses memory after a move to 3.5.

use sslsweep::hygiene;
use sslsweep::probe::{LeftAfterExit, left_after_exit};
use sslsweep_libssl::{Tls, exercise};

use crate::common::{Outcome, on_each};

const THREADS: usize = 200;

fn work(tls: &'static Tls) {
    exercise::fetch_cipher(tls);
    assert!(exercise::random_bytes(tls, &mut [0; 32]));
    drop(exercise::Digest::new(tls));
    tls.clear_errors();
}

/// On the lines of case 25 and on those after it.
#[test]
fn threads_that_fetch_and_draw_random_bytes_leave_nothing() -> Outcome {
    on_each(&["1.0.2", "1.1.1", "3.0", "3.6", "4.0"], |tls| {
        let library = tls.library();
        // Reading the configuration again keeps what it reads, in whatever thread it is done: once.
        assert!(exercise::load_configuration(tls));
        tls.clear_errors();
        let none = |left: LeftAfterExit| (left.blocks, left.bytes, left.states) == (0, 0, 0);

        let guarded = left_after_exit(library, THREADS, || hygiene::run("work", || work(tls)))?;
        println!("measured: guarded: {guarded}");
        assert!(none(guarded), "{guarded}");

        // The explicit stop, which is what a thread can be given on a release that needs it.
        let stopped = left_after_exit(library, THREADS, || {
            work(tls);
            hygiene::park();
        })?;
        assert!(none(stopped), "{stopped}");

        let alone = left_after_exit(library, THREADS, || work(tls))?;
        println!("measured: without hygiene: {alone}");
        if library.shares_states() {
            // Each thread gets the first one's stack, id and state.
            assert!(alone.states <= 1, "{alone}");
        } else {
            assert!(none(alone), "{alone}");
        }
        Ok(())
    })
}

/// The control: what is kept by threads is seen.
#[test]
fn what_threads_do_not_free_is_counted_for_each() -> Outcome {
    on_each(&["1.0.2", "1.1.1", "3.0"], |tls| {
        let left = left_after_exit(tls.library(), 50, || {
            hygiene::run("work", || std::mem::forget(exercise::Digest::new(tls)));
        })?;
        println!("measured: {left}");
        assert!(left.blocks >= 50 && left.states <= 0, "{left}");
        assert!(left.to_string().starts_with("left after exit: "), "{left}");
        Ok(())
    })
}
