use sslsweep::hygiene;

use super::*;

/// Puts an error on the thread's queue.
fn raise(reason: i32) {
    // SAFETY: takes nothing.
    unsafe { ffi::ERR_new() };
    // SAFETY: without a format nothing else is read.
    unsafe { ffi::ERR_set_error(20, reason, std::ptr::null()) };
}

fn leftovers(label: &str) -> (u64, u64) {
    hygiene::ledger().label(label).map_or((0, 0), |figures| (figures.leftovers, figures.arrivals))
}

#[test]
fn java_gets_the_first_error_of_a_tls_call_once_and_the_queue_is_empty() {
    let native = Entered::new(c"first error");
    raise(101);
    raise(102);
    native.tls();
    assert!(!is_dirty());
    drop(native);
    let first = take_last();
    assert_eq!(first & 0x7f_ffff, 101);
    assert!(text(first.into()).to_string_lossy().contains("error:"));
    assert_eq!(take_last(), 0);
    assert_eq!(leftovers("first error"), (0, 0));
}

#[test]
fn what_a_native_leaves_and_finds_is_in_the_ledger_under_its_name() {
    raise(103);
    let native = Entered::new(c"leaves two");
    assert!(!is_dirty(), "others' errors must not be seen by the call");
    raise(104);
    raise(105);
    drop(native);
    assert!(!is_dirty());
    assert_eq!(leftovers("leaves two"), (2, 1));
    assert_eq!(take_last(), 0);
}

#[test]
fn a_native_inside_a_callback_leaves_the_callers_queue_alone() {
    let outer = Entered::new(c"outer");
    raise(106);
    let inner = Entered::new(c"inner");
    inner.tls();
    drop(inner);
    assert!(is_dirty());
    outer.tls();
    drop(outer);
    assert_eq!(take_last() & 0x7f_ffff, 106);
    assert_eq!(leftovers("inner"), (0, 0));
}
