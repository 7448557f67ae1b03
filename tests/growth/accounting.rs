//! Memory accounting on real libraries.

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Barrier};

use sslsweep::libcrypto::memory::{self, Installation, NotCounted};
use sslsweep::libcrypto::{ThreadState, libraries};
use sslsweep::sys::dl::Handle;
use sslsweep_libssl::{LineFiles, Pair, faults};

use crate::common::{LINES, Outcome, contexts, figures, in_processes, on_each};

/// All lines on which memory can be counted.
const COUNTED: [&str; 5] = ["1.0.2", "1.1.1", "3.0", "3.6", "4.0"];

#[test]
fn states_alive_are_counted_exactly() -> Outcome {
    on_each(&COUNTED, |tls| {
        let library = tls.library();
        library.clear();
        let before = figures(tls)?.states;
        assert_eq!(before, 1, "this thread has one");
        let (made, seen) = (Arc::new(Barrier::new(21)), Arc::new(Barrier::new(21)));
        let threads: Vec<_> = (0..20)
            .map(|_| {
                let (made, seen) = (Arc::clone(&made), Arc::clone(&seen));
                std::thread::spawn(move || {
                    library.clear();
                    made.wait();
                    seen.wait();
                    library.release();
                    assert_eq!(library.state(), ThreadState::Absent);
                })
            })
            .collect();
        made.wait();
        let during = figures(tls)?;
        seen.wait();
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")?;
        }
        assert_eq!(during.states, before + 20);
        assert_eq!(during.state_bytes / during.states, library.state_size().unwrap() as u64);
        assert_eq!(figures(tls)?.states, before);
        if let Some(census) = library.census() {
            assert_eq!(census.alive as u64, before);
        }
        Ok(())
    })
}

#[test]
fn work_that_is_done_leaves_as_much_as_there_was() -> Outcome {
    on_each(&COUNTED, |tls| {
        let (server, client) = contexts(tls)?;
        let exchange = || -> Outcome {
            let mut pair = Pair::new(&server, &client)?;
            assert!(pair.handshake());
            let _ = pair.client.write(b"some bytes");
            let _ = pair.server.read(&mut [0; 64]);
            faults::pem_junk(tls);
            tls.clear_errors();
            Ok(())
        };
        // What is made on first use, and the sessions that contexts keep.
        for _ in 0..20 {
            exchange()?;
        }
        let before = figures(tls)?;
        assert!(before.live_bytes > 10_000, "{before:?}");
        for _ in 0..50 {
            exchange()?;
        }
        let after = figures(tls)?;
        assert!(after.allocations > before.allocations + 1000);
        let kept = after.live_bytes.abs_diff(before.live_bytes) / 50;
        println!(
            "measured: {} B live, {} allocations, {kept} B kept per exchange",
            after.live_bytes, after.allocations
        );
        // Sessions in a context's cache (6 kB each) are the most that an exchange may keep.
        assert!(kept < 12_000, "{kept} bytes kept by an exchange");
        let files: Vec<_> = after.files.iter().map(|file| file.file.as_str()).collect();
        assert!(files.iter().any(|file| file.contains("ssl_lib.c")), "{files:?}");
        assert_eq!(after.untracked, 0);
        Ok(())
    })
}

#[test]
fn a_library_that_has_allocated_is_too_late() -> Outcome {
    in_processes(&COUNTED, |line| {
        let tls = LineFiles::named(line)?.load()?;
        assert_eq!(memory::figures(tls.library()), Err(NotCounted::NotAskedFor));
        let reports = memory::install_early();
        let report = reports.iter().find(|report| report.path == tls.library().path());
        assert_eq!(report.ok_or("no report")?.installation, Installation::TooLate);
        assert_eq!(memory::figures(tls.library()), Err(NotCounted::TooLate));
        assert_eq!(memory::install_early(), reports, "asked once");
        Ok(())
    })
}

#[test]
fn a_library_found_later_by_the_registry_is_asked_before_it_is_bound() -> Outcome {
    in_processes(&LINES, |line| {
        assert!(memory::install_early().is_empty(), "this test links to no libcrypto");
        let tls = LineFiles::named(line)?.load();
        let library = match tls {
            Ok(tls) => tls.library(),
            Err(error) => return Err(error.into()),
        };
        assert!(libraries().iter().any(|bound| std::ptr::eq(*bound, library)));
        // 1.1.0 and later are initialised by the loader before the registry sees them.
        let expected = if line == "1.0.2" { None } else { Some(NotCounted::TooLate) };
        assert_eq!(memory::figures(library).err(), expected);
        Ok(())
    })
}

#[test]
fn aws_lc_is_left_alone() -> Outcome {
    in_processes(&["aws-lc"], |line| {
        let tls = LineFiles::named(line)?.load_accounted()?;
        let Err(NotCounted::NotOffered(why)) = memory::figures(tls.library()) else {
            return Err("AWS-LC was asked".into());
        };
        assert!(why.contains("at any time"), "{why}");
        Ok(())
    })
}

/// Memory functions of somebody else.
mod others {
    use std::ffi::{c_char, c_int, c_void};

    pub unsafe extern "C" fn malloc(size: usize, _: *const c_char, _: c_int) -> *mut c_void {
        // SAFETY: no preconditions.
        unsafe { libc::malloc(size) }
    }

    pub unsafe extern "C" fn realloc(
        block: *mut c_void,
        size: usize,
        _: *const c_char,
        _: c_int,
    ) -> *mut c_void {
        // SAFETY: the caller's own promises.
        unsafe { libc::realloc(block, size) }
    }

    pub unsafe extern "C" fn free(block: *mut c_void, _: *const c_char, _: c_int) {
        // SAFETY: the caller's own promises.
        unsafe { libc::free(block) };
    }
}

type SetFunctions = unsafe extern "C" fn(
    unsafe extern "C" fn(usize, *const c_char, c_int) -> *mut c_void,
    unsafe extern "C" fn(*mut c_void, usize, *const c_char, c_int) -> *mut c_void,
    unsafe extern "C" fn(*mut c_void, *const c_char, c_int),
) -> c_int;

/// Installs somebody else's functions, at an address of CRYPTO_set_mem_functions of 1.1.0 or later.
fn set_others(address: std::ptr::NonNull<c_void>) -> c_int {
    // SAFETY: the function of that name has this prototype from 1.1.0 on.
    let set = unsafe { std::mem::transmute::<*mut c_void, SetFunctions>(address.as_ptr()) };
    // SAFETY: the three do what malloc, realloc and free do.
    unsafe { set(others::malloc, others::realloc, others::free) }
}

#[test]
fn functions_that_somebody_else_installs_later_are_noticed() -> Outcome {
    on_each(&["1.1.1", "3.0"], |tls| {
        assert!(memory::figures(tls.library()).is_ok());
        let set = tls.library().address_of(c"CRYPTO_set_mem_functions").ok_or("no such call")?;
        assert_eq!(set_others(set), 1, "this line lets it happen at any time after ours");
        // What ours gave is freed by theirs, as blocks have no header.
        faults::pem_junk(tls);
        tls.clear_errors();
        assert_eq!(memory::figures(tls.library()), Err(NotCounted::Replaced));
        Ok(())
    })
}

#[test]
fn functions_that_somebody_else_has_installed_are_left() -> Outcome {
    in_processes(&["3.0", "3.6", "4.0"], |line| {
        let files = LineFiles::named(line)?;
        // SAFETY: a library of the manifest, which this project's tests trust.
        let handle = unsafe { Handle::load(&files.libcrypto) }?;
        let set = handle.symbol(c"CRYPTO_set_mem_functions").ok_or("no such call")?;
        assert_eq!(set_others(set), 1);
        let tls = files.load_accounted()?;
        let found = memory::figures(tls.library());
        assert!(
            matches!(&found, Err(NotCounted::NotOffered(why)) if why.contains("somebody else")),
            "{found:?}"
        );
        Ok(())
    })
}

#[test]
fn the_child_of_a_fork_goes_on_uncounted() -> Outcome {
    on_each(&COUNTED, |tls| {
        faults::pem_junk(tls);
        // SAFETY: libcrypto may be used in the child of a process in which no other thread is inside
        // it; the memory that the child prints with is the C library's, which looks after forks.
        let child = unsafe { libc::fork() };
        assert!(child >= 0);
        if child == 0 {
            let stopped = memory::figures(tls.library()) == Err(NotCounted::Forked);
            faults::pem_junk(tls);
            tls.clear_errors();
            let fine = stopped && tls.peek_error() == 0 && !memory::install_early().is_empty();
            // SAFETY: ends the child at once, without handlers of the test program.
            unsafe { libc::_exit(i32::from(!fine)) };
        }
        let mut status = 0;
        // SAFETY: the child is ours, and `status` is a valid place.
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0);
        assert!(figures(tls).is_ok());
        tls.clear_errors();
        Ok(())
    })
}
