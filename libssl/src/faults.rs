//! Ways in which a task leaves errors on its thread's queue. Each does what programs do every day.

use crate::load::Tls;
use crate::pem::Source;

/// Parses four bytes that are no certificate, as a loop over a PEM file does at its end.
///
/// Leaves one error: PEM, "no start line".
#[doc(alias = "PEM_read_bio_X509")]
pub fn pem_junk(tls: &'static Tls) {
    if let Some(mut source) = Source::new(tls, b"junk") {
        drop(source.certificate());
    }
}

/// Opens a file that does not exist.
///
/// Leaves an error of the operating system, then one or more of BIO.
///
/// See [BIO_new_file(3)](https://docs.openssl.org/master/man3/BIO_s_file/).
#[doc(alias = "BIO_new_file")]
pub fn sys_miss(tls: &'static Tls) {
    // SAFETY: two NUL-terminated texts, which the function only reads.
    let bio =
        unsafe { (tls.symbols.BIO_new_file)(c"/nonexistent/sslsweep".as_ptr(), c"r".as_ptr()) };
    debug_assert!(bio.is_null());
}
