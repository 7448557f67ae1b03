//! Guards that were entered before any libcrypto was there.

use std::ffi::{CStr, c_char, c_void};

use sslsweep::hygiene::{Guard, ledger, look_again, run};
use sslsweep::libcrypto::{self, Look};
use sslsweep::sys::dl::Handle;
use sslsweep_libssl::LineFiles;

use crate::common::{Outcome, give_locks, line_named, plug_in, plug_in_without_locks};

type NewFile = unsafe extern "C" fn(*const c_char, *const c_char) -> *mut c_void;

/// Leaves errors: a file that does not exist.
fn leave(libcrypto: &Handle) -> Outcome {
    let open = libcrypto.symbol(c"BIO_new_file").ok_or("no BIO_new_file")?;
    // SAFETY: the address of the function of that name, which has this type on each release.
    let open = unsafe { std::mem::transmute::<*mut c_void, NewFile>(open.as_ptr()) };
    let (name, mode): (&CStr, &CStr) = (c"/nonexistent/sslsweep", c"r");
    // SAFETY: two NUL-terminated texts, which the function only reads.
    let file = unsafe { open(name.as_ptr(), mode.as_ptr()) };
    assert!(file.is_null());
    Ok(())
}

fn check(line: &str) -> Outcome {
    let line = LineFiles::named(line)?;
    for _ in 0..1000 {
        run("before", || ());
    }
    assert!(libcrypto::bound().is_empty());

    // A guard that is active while the library arrives ends as usual.
    let guard = Guard::enter("loads a plug-in");
    let handle = plug_in(&line)?;
    leave(&handle)?;
    drop(guard);
    // A thread that has had many tasks looks seldom, ...
    let mut tasks = 0;
    while ledger().arrivals() == 0 {
        tasks += 1;
        assert!(tasks <= 4096, "not found within 4096 tasks");
        run("after", || ());
    }
    // ... and then finds what was left in the meantime.
    assert_eq!(libcrypto::bound().len(), 1);
    let arrivals = ledger().arrivals();
    assert!(arrivals >= 2, "the system's error, and one of BIO at least");
    run("after", || leave(&handle))?;
    let figures = ledger();
    let after = figures.label("after").ok_or("no task")?;
    assert_eq!((after.leftovers, after.arrivals, after.dirty_tasks), (arrivals, arrivals, 1));
    // A thread that begins now knows at its first task.
    let other = std::thread::spawn(move || run("other thread", || leave(&handle).is_ok()));
    assert!(other.join().map_err(|_| "the thread panicked")?);
    let figures = ledger();
    assert_eq!(figures.label("other thread").map(|figures| figures.leftovers), Some(arrivals));
    Ok(())
}

/// Nobody needs to wait for the next look.
fn at_once(line: &str) -> Outcome {
    let line = LineFiles::named(line)?;
    run("before", || ());
    let handle = plug_in(&line)?;
    assert_eq!(look_again(), Look::Current);
    run("after", || leave(&handle))?;
    assert_eq!(ledger().label("after").map(|after| after.dirty_tasks), Some(1));
    Ok(())
}

macro_rules! each {
    ($check:ident: $($test:ident)+) => {
        crate::alone! { $(fn $test() { super::$check(&super::line_named(stringify!($test))) })+ }
    };
}

mod found_by_later_tasks {
    each!(check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
}

mod found_when_asked_to_look {
    each!(at_once: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
}

crate::alone! {
    /// Without locks nobody but the program's only thread may touch a 1.0.x.
    fn a_1_0_2_without_locks_is_left_alone_until_it_has_some() {
        let handle = plug_in_without_locks(&LineFiles::named("1.0.2")?)?;
        assert_eq!(look_again(), Look::Current);
        run("without locks", || leave(&handle))?;
        assert!(libcrypto::bound().is_empty());
        let refused = libcrypto::refused();
        assert_eq!(refused.len(), 1);
        assert!(refused[0].1.contains("CRYPTO_set_locking_callback"), "{}", refused[0].1);

        give_locks(&handle)?;
        assert_eq!(look_again(), Look::Current);
        run("with locks", || leave(&handle))?;
        assert_eq!(libcrypto::bound().len(), 1);
        assert!(libcrypto::refused().is_empty());
        let figures = ledger();
        let of = |label| figures.label(label).map(|figures| figures.dirty_tasks);
        assert_eq!((of("without locks"), of("with locks")), (Some(0), Some(1)));
        Ok(())
    }

    fn a_process_without_libcrypto() {
        for _ in 0..10_000 {
            run("nothing", || run("inner", || ()));
        }
        assert!(libcrypto::bound().is_empty() && libcrypto::refused().is_empty());
        assert_eq!((ledger().tasks(), ledger().leftovers()), (20_000, 0));
        Ok(())
    }
}
