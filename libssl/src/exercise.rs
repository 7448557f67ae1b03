//! Work that a program does with libcrypto every day and that makes it keep something: for tests that
//! watch what grows.

use std::ffi::{c_int, c_ulong, c_void};
use std::ptr::NonNull;

use crate::load::Tls;

/// Fills `buffer` with random bytes; the thread gets random generators of its own on 1.1.1 and later.
///
/// See [RAND_bytes(3)](https://docs.openssl.org/master/man3/RAND_bytes/).
#[doc(alias = "RAND_bytes")]
pub fn random_bytes(tls: &'static Tls, buffer: &mut [u8]) -> bool {
    let Some(random) = tls.symbols.RAND_bytes else { return false };
    let length = c_int::try_from(buffer.len()).unwrap_or(c_int::MAX);
    // SAFETY: the buffer is writable for that length.
    unsafe { random(buffer.as_mut_ptr(), length) == 1 }
}

/// Fetches an algorithm by its name and gives it back, as code does that was not changed for 3.0.
/// False where the release has no such call.
///
/// See [EVP_CIPHER_fetch(3)](https://docs.openssl.org/master/man3/EVP_EncryptInit/).
#[doc(alias = "EVP_CIPHER_fetch")]
pub fn fetch_cipher(tls: &'static Tls) -> bool {
    let (Some(fetch), Some(free)) = (tls.symbols.EVP_CIPHER_fetch, tls.symbols.EVP_CIPHER_free)
    else {
        return false;
    };
    // SAFETY: null stands for the default library context and for no properties; the name is a text.
    let cipher = unsafe { fetch(std::ptr::null_mut(), c"AES-256-GCM".as_ptr(), std::ptr::null()) };
    let Some(cipher) = NonNull::new(cipher) else { return false };
    // SAFETY: the reference that the fetch gave, given back once.
    unsafe { free(cipher.as_ptr()) };
    true
}

/// Reads the library's configuration file; a missing one is no failure.
///
/// See [CONF_modules_load_file(3)](https://docs.openssl.org/master/man3/CONF_modules_load_file/).
#[doc(alias = "CONF_modules_load_file")]
pub fn load_configuration(tls: &'static Tls) -> bool {
    /// CONF_MFLAGS_IGNORE_MISSING_FILE.
    const IGNORE_MISSING_FILE: c_ulong = 0x10;
    let Some(load) = tls.symbols.CONF_modules_load_file else { return false };
    // SAFETY: null stands for the library's own file and for the program's default section.
    unsafe { load(std::ptr::null(), std::ptr::null(), IGNORE_MISSING_FILE) == 1 }
}

/// A digest that is being computed (SHA-256), as one part of a keyed one is.
///
/// See [EVP_DigestInit_ex(3)](https://docs.openssl.org/master/man3/EVP_DigestInit/).
#[derive(Debug)]
#[doc(alias = "EVP_MD_CTX")]
pub struct Digest {
    tls: &'static Tls,
    raw: NonNull<c_void>,
}

impl Digest {
    /// Makes one and starts it; `None` where the library cannot.
    #[doc(alias = "EVP_MD_CTX_new")]
    #[doc(alias = "EVP_MD_CTX_create")]
    #[must_use]
    pub fn new(tls: &'static Tls) -> Option<Self> {
        let symbols = &tls.symbols;
        let make = symbols.EVP_MD_CTX_new.or(symbols.EVP_MD_CTX_create)?;
        let (start, sha256) = (symbols.EVP_DigestInit_ex?, symbols.EVP_sha256?);
        // SAFETY: no preconditions.
        let raw = NonNull::new(unsafe { make() })?;
        let digest = Self { tls, raw };
        // SAFETY: no preconditions; a static table.
        let sha256 = unsafe { sha256() };
        // SAFETY: the context is live, the algorithm static, and null means no engine.
        let started = unsafe { start(raw.as_ptr(), sha256, std::ptr::null_mut()) };
        (started == 1).then_some(digest)
    }
}

impl Drop for Digest {
    fn drop(&mut self) {
        let symbols = &self.tls.symbols;
        if let Some(free) = symbols.EVP_MD_CTX_free.or(symbols.EVP_MD_CTX_destroy) {
            // SAFETY: the context is ours and is freed once, by the call that belongs to the release.
            unsafe { free(self.raw.as_ptr()) };
        }
    }
}
