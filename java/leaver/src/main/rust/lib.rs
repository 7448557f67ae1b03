//! Natives of `org.sslsweep.leaver.Leaver`: errors left on purpose, for tests.
//!
//! The errors are genuine: a certificate is asked of a text that has none, which is how many programs
//! leave one. They are left on the calling thread, in the libcrypto that this library is linked with, the
//! system's; the JVM's server uses the same one, or this library brings it.

use std::ffi::c_void;
use std::ptr;

use openssl_sys as ffi;

const NO_CERTIFICATE: &[u8] = b"no certificate in here\n";

/// `int leave0(int count)`: leaves so many errors. Answers how many it left; fewer when memory ran out.
// SAFETY: no other library of a JVM exports a name of this class.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_sslsweep_leaver_Leaver_leave0(
    _env: *mut c_void,
    _class: *mut c_void,
    count: i32,
) -> i32 {
    // On a thread that has never used libcrypto nothing may come before: not even an initialisation.
    (0..count).take_while(|_| fail_to_read_a_certificate()).count() as i32
}

/// `boolean isDirty0()`: whether the calling thread's queue holds an error. Changes nothing.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_sslsweep_leaver_Leaver_isDirty0(
    _env: *mut c_void,
    _class: *mut c_void,
) -> bool {
    // SAFETY: takes no pointer and looks only at the calling thread's queue.
    unsafe { ffi::ERR_peek_last_error() != 0 }
}

/// `int drain0()`: takes all errors out of the calling thread's queue. Answers how many there were.
// SAFETY: as above.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_sslsweep_leaver_Leaver_drain0(
    _env: *mut c_void,
    _class: *mut c_void,
) -> i32 {
    let mut count = 0;
    // SAFETY: takes no pointer and touches only the calling thread's queue.
    while unsafe { ffi::ERR_get_error() } != 0 {
        count += 1;
    }
    count
}

/// Leaves one error, `PEM_R_NO_START_LINE`. False: there was no memory to get that far.
fn fail_to_read_a_certificate() -> bool {
    let length = NO_CERTIFICATE.len() as i32;
    // SAFETY: the text is static, the length is its own, and a memory BIO of this kind only reads.
    let bio = unsafe { ffi::BIO_new_mem_buf(NO_CERTIFICATE.as_ptr().cast(), length) };
    if bio.is_null() {
        return false;
    }
    // SAFETY: `bio` is alive; null asks for a new certificate and for no passphrase.
    let certificate =
        unsafe { ffi::PEM_read_bio_X509(bio, ptr::null_mut(), None, ptr::null_mut()) };
    // SAFETY: `bio` is ours and used no more. BIO_free takes no error away and adds none here.
    unsafe { ffi::BIO_free_all(bio) };
    certificate.is_null()
}
