//! Sessions, for tests that resume.

use std::ptr::NonNull;

use crate::load::Tls;
use crate::symbols::SslSession;

/// A session that a client can offer to resume.
#[derive(Debug)]
#[doc(alias = "SSL_SESSION")]
pub struct Session {
    pub(crate) tls: &'static Tls,
    pub(crate) raw: NonNull<SslSession>,
}

// SAFETY: a session belongs to no thread; its reference count is guarded by the library.
unsafe impl Send for Session {}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: our own reference, given back once.
        unsafe { (self.tls.symbols.SSL_SESSION_free)(self.raw.as_ptr()) };
    }
}
