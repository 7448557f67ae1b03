//! Certificates and keys read from PEM text.
//!
//! The library says that a text is at its end by an error on the queue ("no start line"): reading
//! leaves errors, which the callers roll back.

use std::ffi::{c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::NonNull;

use crate::load::Tls;
use crate::symbols::{Bio, Pkey, X509};

/// A BIO that reads from bytes of ours.
pub(crate) struct Source<'a> {
    tls: &'static Tls,
    pub(crate) raw: NonNull<Bio>,
    /// The BIO reads the bytes where they are.
    _bytes: PhantomData<&'a [u8]>,
}

impl<'a> Source<'a> {
    /// See [BIO_new_mem_buf(3)](https://docs.openssl.org/master/man3/BIO_s_mem/).
    pub(crate) fn new(tls: &'static Tls, bytes: &'a [u8]) -> Option<Self> {
        let length = c_int::try_from(bytes.len()).ok()?;
        // SAFETY: the bytes are readable for that length and outlive the BIO by its lifetime.
        let raw = unsafe { (tls.symbols.BIO_new_mem_buf)(bytes.as_ptr().cast(), length) };
        Some(Self { tls, raw: NonNull::new(raw)?, _bytes: PhantomData })
    }

    /// Reads one certificate. At the end of the bytes the library leaves an error: no start line.
    ///
    /// See [PEM_read_bio_X509(3)](https://docs.openssl.org/master/man3/PEM_read_bio_PrivateKey/).
    pub(crate) fn certificate(&mut self) -> Option<Certificate> {
        // SAFETY: the BIO is live; no certificate to reuse; the callback matches its type.
        let raw = unsafe {
            (self.tls.symbols.PEM_read_bio_X509)(
                self.raw.as_ptr(),
                std::ptr::null_mut(),
                Some(no_password),
                std::ptr::null_mut(),
            )
        };
        Some(Certificate { tls: self.tls, raw: NonNull::new(raw)? })
    }

    /// The certificates that are left, up to the first that cannot be read.
    pub(crate) fn certificates(&mut self) -> impl Iterator<Item = Certificate> {
        std::iter::from_fn(|| self.certificate())
    }
}

impl Drop for Source<'_> {
    fn drop(&mut self) {
        // SAFETY: the BIO is ours and is freed once.
        unsafe { (self.tls.symbols.BIO_free)(self.raw.as_ptr()) };
    }
}

/// An X.509 certificate.
pub(crate) struct Certificate {
    tls: &'static Tls,
    pub(crate) raw: NonNull<X509>,
}

impl Drop for Certificate {
    fn drop(&mut self) {
        // SAFETY: our own reference, given back once.
        unsafe { (self.tls.symbols.X509_free)(self.raw.as_ptr()) };
    }
}

/// A key: a private one, or a certificate's public one.
pub(crate) struct Key {
    tls: &'static Tls,
    pub(crate) raw: NonNull<Pkey>,
}

impl Key {
    /// Reads a private key.
    ///
    /// See [PEM_read_bio_PrivateKey(3)](https://docs.openssl.org/master/man3/PEM_read_bio_PrivateKey/).
    pub(crate) fn read(tls: &'static Tls, pem: &[u8]) -> Option<Self> {
        let source = Source::new(tls, pem)?;
        // SAFETY: the BIO is live; no key to reuse; the callback matches its type.
        let raw = unsafe {
            (tls.symbols.PEM_read_bio_PrivateKey)(
                source.raw.as_ptr(),
                std::ptr::null_mut(),
                Some(no_password),
                std::ptr::null_mut(),
            )
        };
        // SAFETY: the reference that the call gave, which is ours.
        unsafe { Self::from_raw(tls, raw) }
    }

    /// Owns a key; `None` for null.
    ///
    /// # Safety
    /// `raw` is null, or a key of the library `tls` with a reference that nobody else gives back.
    pub(crate) unsafe fn from_raw(tls: &'static Tls, raw: *mut Pkey) -> Option<Self> {
        Some(Self { tls, raw: NonNull::new(raw)? })
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: our own reference, given back once.
        unsafe { (self.tls.symbols.EVP_PKEY_free)(self.raw.as_ptr()) };
    }
}

/// Refuses to give a passphrase; without a callback the library would ask the terminal.
pub(crate) extern "C" fn no_password(
    _buffer: *mut c_char,
    _size: c_int,
    _writing: c_int,
    _data: *mut c_void,
) -> c_int {
    -1
}
