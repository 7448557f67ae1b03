//! Objects of OpenSSL's that are freed when they are no longer needed.

use std::ffi::{c_int, c_long};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

use crate::ffi::{self, BIO, EVP_PKEY, PKCS12, X509};
use crate::java::Refusal;

/// What OpenSSL makes one at a time, and frees with a function of its own.
pub(crate) trait Freed {
    /// Gives it back.
    ///
    /// # Safety
    /// `object` is live and the caller's, who does not use it any more.
    unsafe fn free(object: *mut Self);
}

/// The [`Freed`] of a type, by OpenSSL's function.
macro_rules! freed {
    ($($type:ident by $free:ident),*) => {
        $(impl $crate::certificate::Freed for $type {
            unsafe fn free(object: *mut Self) {
                // SAFETY: the caller vouches for it.
                unsafe { $crate::ffi::$free(object) };
            }
        })*
    };
}

pub(crate) use freed;

freed!(X509 by X509_free, EVP_PKEY by EVP_PKEY_free, BIO by BIO_free_all, PKCS12 by PKCS12_free);

/// One that is ours.
pub(crate) struct Owned<T: Freed>(NonNull<T>);

impl<T: Freed> Owned<T> {
    /// Takes what OpenSSL has made; nothing where it could not.
    ///
    /// # Safety
    /// `object` is null, or live and the caller's to free.
    pub(crate) unsafe fn new(object: *mut T) -> Option<Self> {
        NonNull::new(object).map(Self)
    }

    pub(crate) fn as_ptr(&self) -> *mut T {
        self.0.as_ptr()
    }

    /// For a function that keeps it.
    pub(crate) fn into_raw(self) -> *mut T {
        let object = self.0.as_ptr();
        std::mem::forget(self);
        object
    }
}

impl<T: Freed> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: live, ours, and given back once.
        unsafe { T::free(self.0.as_ptr()) };
    }
}

/// Bytes that OpenSSL reads as if they were a file.
pub(super) struct Source<'a> {
    bio: Owned<BIO>,
    _bytes: PhantomData<&'a [u8]>,
}

impl<'a> Source<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Self, Refusal> {
        let length = c_int::try_from(bytes.len())
            .map_err(|_| Refusal::exception("certificates and keys must be shorter than 2 GB"))?;
        // SAFETY: so many bytes, which are only read; they outlive the BIO, as the lifetime says.
        let bio = unsafe { ffi::BIO_new_mem_buf(bytes.as_ptr().cast(), length) };
        // SAFETY: made just now, for us.
        let bio = unsafe { Owned::new(bio) }.ok_or_else(|| {
            Refusal::exception(format!("no memory for a BIO: {}", crate::queue::pop_text()))
        })?;
        Ok(Self { bio, _bytes: PhantomData })
    }

    pub(super) fn as_ptr(&self) -> *mut BIO {
        self.bio.as_ptr()
    }
}

/// A certificate out of its DER; what comes behind it is not looked at.
pub(crate) fn from_der(der: &[u8]) -> Option<Owned<X509>> {
    let length = c_long::try_from(der.len()).ok()?;
    let mut start = der.as_ptr();
    // SAFETY: so many bytes; the place of the pointer is ours, and no object is reused.
    let certificate = unsafe { ffi::d2i_X509(ptr::null_mut(), &mut start, length) };
    // SAFETY: made just now, for us.
    unsafe { Owned::new(certificate) }
}

/// The DER of a certificate; nothing where OpenSSL cannot encode it.
///
/// # Safety
/// `certificate` is live.
pub(crate) unsafe fn to_der(certificate: *const X509) -> Option<Vec<u8>> {
    // SAFETY: live, as the caller vouches; without a place to write to only the length is given.
    let length = unsafe { ffi::i2d_X509(certificate, ptr::null_mut()) };
    let mut der = vec![0; usize::try_from(length).ok().filter(|&length| length > 0)?];
    let mut end = der.as_mut_ptr();
    // SAFETY: as above; the place has the length that was just said for the same certificate.
    let written = unsafe { ffi::i2d_X509(certificate, &mut end) };
    (written == length).then_some(der)
}
