//! Ways in which a task leaves errors on its thread's queue. Each does what programs do every day.
//!
//! None of them looks at the queue or clears it. What each leaves differs from release to release;
//! the tests that use them say what. Where a library lacks the call they panic, unless they say otherwise:
//! a test must not pass because nothing was left.

use std::ffi::{CStr, CString, c_int, c_long};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;

use crate::context::Context;
use crate::load::Tls;
use crate::pem::{Key, Source, no_password};
use crate::symbols::{Rsa, Symbols};

/// A call that each release has.
fn present<F>(call: Option<F>, name: &str) -> F {
    call.unwrap_or_else(|| panic!("this build of the library has no {name}"))
}

/// Parses four bytes that are no certificate, as a loop over a PEM file does at its end.
///
/// Leaves one error: PEM, "no start line".
#[doc(alias = "PEM_read_bio_X509")]
pub fn pem_junk(tls: &'static Tls) {
    if let Some(mut source) = Source::new(tls, b"junk") {
        drop(source.certificate());
    }
}

/// Reads all certificates of a PEM text, one call each, until there are no more; how many there were.
///
/// That there are no more is an error to the library: PEM, "no start line".
#[doc(alias = "PEM_read_bio_X509")]
pub fn pem_to_its_end(tls: &'static Tls, pem: &[u8]) -> usize {
    Source::new(tls, pem).map_or(0, |mut source| source.certificates().count())
}

/// Opens a file that does not exist.
///
/// Leaves an error of the operating system, then one or more of BIO.
///
/// See [BIO_new_file(3)](https://docs.openssl.org/master/man3/BIO_s_file/).
#[doc(alias = "BIO_new_file")]
pub fn sys_miss(tls: &'static Tls) {
    let open = present(tls.symbols.BIO_new_file, "BIO_new_file");
    // SAFETY: two NUL-terminated texts, which the function only reads.
    let bio = unsafe { open(c"/nonexistent/sslsweep".as_ptr(), c"r".as_ptr()) };
    debug_assert!(bio.is_null());
}

/// Writes into a pipe that nobody reads, and reports it as a BIO of a program's own does in its write
/// method: by an error of the operating system on the queue.
///
/// Leaves one error: "Broken pipe".
pub fn broken_pipe(tls: &'static Tls) {
    /// ERR_LIB_SYS.
    const SYSTEM: i32 = 2;
    let Ok((reader, mut writer)) = std::io::pipe() else { return };
    drop(reader);
    // A Rust program ignores SIGPIPE.
    let written = writer.write(b"a record").map_err(|error| error.raw_os_error());
    if let Err(Some(errno)) = written {
        tls.library().raise(SYSTEM, errno, c"sslsweep-bio", 1);
    }
}

/// Decodes a certificate from bytes that are none.
///
/// See [d2i_X509(3)](https://docs.openssl.org/master/man3/d2i_X509/).
#[doc(alias = "d2i_X509")]
pub fn certificate_from_garbage(tls: &'static Tls) {
    let decode = present(tls.symbols.d2i_X509, "d2i_X509");
    let (mut bytes, length) = garbage();
    // SAFETY: nothing to reuse; `bytes` leads to that many readable bytes.
    let raw = unsafe { decode(std::ptr::null_mut(), &raw mut bytes, length) };
    debug_assert!(raw.is_null());
}

/// Imports a key store that is none.
///
/// See [d2i_PKCS12(3)](https://docs.openssl.org/master/man3/d2i_X509/).
#[doc(alias = "d2i_PKCS12")]
pub fn pkcs12_from_garbage(tls: &'static Tls) {
    let decode = present(tls.symbols.d2i_PKCS12, "d2i_PKCS12");
    let free = present(tls.symbols.PKCS12_free, "PKCS12_free");
    let (mut bytes, length) = garbage();
    // SAFETY: nothing to reuse; `bytes` leads to that many readable bytes.
    let raw = unsafe { decode(std::ptr::null_mut(), &raw mut bytes, length) };
    // SAFETY: null, or a store of our own that is freed once.
    unsafe { free(raw) };
}

/// A sequence that promises more bytes than there are.
fn garbage() -> (*const u8, c_long) {
    const BYTES: [u8; 8] = [0x30, 0x82, 0x10, 0x00, 0x02, 0x01, 0x03, 0x30];
    static GARBAGE: [u8; BYTES.len()] = BYTES;
    (GARBAGE.as_ptr(), BYTES.len() as c_long)
}

const UNKNOWN: &CStr = c"NO-SUCH-DIGEST";

/// Fetches a digest that no provider has; false where the release has no fetching (before 3.0).
///
/// Leaves one error: EVP, "unsupported algorithm".
///
/// See [EVP_MD_fetch(3)](https://docs.openssl.org/master/man3/EVP_DigestInit/).
#[doc(alias = "EVP_MD_fetch")]
pub fn fetch_unknown_digest(tls: &'static Tls) -> bool {
    let (Some(fetch), Some(free)) = (tls.symbols.EVP_MD_fetch, tls.symbols.EVP_MD_free) else {
        return false;
    };
    // SAFETY: null means the default context and no properties; the name is NUL-terminated.
    let digest = unsafe { fetch(std::ptr::null_mut(), UNKNOWN.as_ptr(), std::ptr::null()) };
    // SAFETY: null, or a reference of our own that is given back once.
    unsafe { free(digest) };
    true
}

/// Looks up a digest that does not exist, as programs did before 3.0.
///
/// Leaves nothing.
///
/// See [EVP_get_digestbyname(3)](https://docs.openssl.org/master/man3/EVP_DigestInit/).
#[doc(alias = "EVP_get_digestbyname")]
pub fn look_up_unknown_digest(tls: &'static Tls) {
    let look_up = present(tls.symbols.EVP_get_digestbyname, "EVP_get_digestbyname");
    // SAFETY: the name is NUL-terminated; the answer is null or static.
    let digest = unsafe { look_up(UNKNOWN.as_ptr()) };
    debug_assert!(digest.is_null());
}

/// Trusts the certificates of a file; whether the library says that it worked.
///
/// See [SSL_CTX_load_verify_locations(3)](https://docs.openssl.org/master/man3/SSL_CTX_load_verify_locations/).
#[doc(alias = "SSL_CTX_load_verify_locations")]
pub fn load_verify_locations(context: &mut Context, file: &Path) -> bool {
    let Ok(file) = CString::new(file.as_os_str().as_bytes()) else { return false };
    let load = context.tls.symbols.SSL_CTX_load_verify_locations;
    let load = present(load, "SSL_CTX_load_verify_locations");
    // SAFETY: the context is live, and `&mut` keeps other threads away from it; the name is
    // NUL-terminated; null means no folder.
    unsafe { load(context.raw.as_ptr(), file.as_ptr(), std::ptr::null()) == 1 }
}

/// Checks a certificate's signature with the key of another certificate; whether it fits.
///
/// Leaves errors where it does not, and one of PEM where one of the two is no certificate.
///
/// See [X509_verify(3)](https://docs.openssl.org/master/man3/X509_verify/).
#[doc(alias = "X509_verify")]
pub fn verify_signature(tls: &'static Tls, certificate: &[u8], signer: &[u8]) -> bool {
    let public_key = present(tls.symbols.X509_get_pubkey, "X509_get_pubkey");
    let verify = present(tls.symbols.X509_verify, "X509_verify");
    let read = |pem| Source::new(tls, pem)?.certificate();
    let (Some(certificate), Some(signer)) = (read(certificate), read(signer)) else {
        return false;
    };
    // SAFETY: the certificate is live.
    let key = unsafe { public_key(signer.raw.as_ptr()) };
    // SAFETY: the reference that the call gave, which is ours.
    let Some(key) = (unsafe { Key::from_raw(tls, key) }) else { return false };
    // SAFETY: certificate and key are live and of one library; both are only read.
    unsafe { verify(certificate.raw.as_ptr(), key.raw.as_ptr()) == 1 }
}

/// RSA_PKCS1_PADDING.
const PKCS1: c_int = 1;

/// Encrypts a text with an RSA key and decrypts it again; whether that worked. With `spoilt`
/// it is changed in between, so that its padding is wrong afterwards.
///
/// Decryption says nothing in its timing about the padding: it raises the error in either case, and
/// takes it back, in the ring itself, where the padding was right. Such an entry is never given out.
///
/// See [RSA_private_decrypt(3)](https://docs.openssl.org/master/man3/RSA_public_encrypt/).
#[doc(alias = "RSA_private_decrypt")]
pub fn rsa_round_trip(tls: &'static Tls, key: &[u8], spoilt: bool) -> bool {
    const TEXT: &[u8] = b"premaster";
    let symbols = &tls.symbols;
    let (Some(encrypt), Some(decrypt), Some(size)) =
        (symbols.RSA_public_encrypt, symbols.RSA_private_decrypt, symbols.RSA_size)
    else {
        return false;
    };
    let Some(key) = RsaKey::read(tls, key) else { return false };
    // SAFETY: the key is live; the call only reads it.
    let size = unsafe { size(key.raw.as_ptr()) };
    let mut sealed = vec![0; usize::try_from(size).unwrap_or(0)];
    // SAFETY: the text is readable for its length, and `sealed` as large as the key.
    let length = unsafe {
        encrypt(TEXT.len() as c_int, TEXT.as_ptr(), sealed.as_mut_ptr(), key.raw.as_ptr(), PKCS1)
    };
    if length != size {
        return false;
    }
    if spoilt && let Some(byte) = sealed.last_mut() {
        *byte ^= 1;
    }
    let mut text = vec![0; sealed.len()];
    // SAFETY: `sealed` is readable for that length, and `text` as large as the key.
    let length =
        unsafe { decrypt(size, sealed.as_ptr(), text.as_mut_ptr(), key.raw.as_ptr(), PKCS1) };
    usize::try_from(length).ok().and_then(|length| text.get(..length)) == Some(TEXT)
}

struct RsaKey {
    symbols: &'static Symbols,
    raw: NonNull<Rsa>,
}

impl RsaKey {
    fn read(tls: &'static Tls, pem: &[u8]) -> Option<Self> {
        let symbols = &tls.symbols;
        let source = Source::new(tls, pem)?;
        let read = symbols.PEM_read_bio_RSAPrivateKey?;
        // SAFETY: the BIO is live; no key to reuse; the callback matches its type.
        let raw = unsafe {
            read(source.raw.as_ptr(), std::ptr::null_mut(), Some(no_password), std::ptr::null_mut())
        };
        Some(Self { symbols, raw: NonNull::new(raw)? })
    }
}

impl Drop for RsaKey {
    fn drop(&mut self) {
        if let Some(free) = self.symbols.RSA_free {
            // SAFETY: our own reference, given back once.
            unsafe { free(self.raw.as_ptr()) };
        }
    }
}
