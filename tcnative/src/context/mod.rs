//! `SSLContext`: what the connections of one certificate or host have in common.

mod alpn;
pub(crate) mod ciphers;
mod make;
mod options;
mod sessions;

pub(crate) use alpn::Fallback;
pub(crate) use options::{add as add_options, remove as remove_options};
pub(crate) use sessions::Counter;

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use jni::sys::jlong;

use crate::ffi::{self, SSL_CTX};
use crate::handle::{Kind, Shared};
use crate::java::Refusal;
use crate::verify::{Level, Ocsp, Verifier};
use alpn::Protocols;

/// All contexts that Java has.
pub(crate) static CONTEXTS: Shared<Context> = Shared::new(Kind::Context);

/// Which side of connections a context is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Client,
    Server,
    Both,
}

impl Mode {
    pub(crate) fn serves(self) -> bool {
        self != Self::Client
    }
}

/// A context. Its connections keep it alive.
pub(crate) struct Context {
    context: *mut SSL_CTX,
    mode: Mode,
    /// OpenSSL wants nobody to make connections while a context is being set up.
    set_up: RwLock<()>,
    protocols: RwLock<Protocols>,
    verifier: RwLock<Option<Arc<Verifier>>>,
    /// See [`Level`].
    level: AtomicI32,
    depth: AtomicI32,
    /// A file or folder of CA certificates was given.
    has_authorities: AtomicBool,
    ocsp: RwLock<Ocsp>,
}

// SAFETY: an SSL_CTX may be used by several threads as long as it is not being changed
// (openssl-threads(7)); `set_up` sees to that, and the rest has locks of its own.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: made by SSL_CTX_new, and given back once; connections have references of their own.
        unsafe { ffi::SSL_CTX_free(self.context) };
    }
}

/// A context that is not being changed meanwhile.
pub(crate) struct Reading<'a> {
    pub(crate) context: *mut SSL_CTX,
    _guard: RwLockReadGuard<'a, ()>,
}

/// A context that nobody else uses meanwhile, to make connections or to change it.
pub(crate) struct Changing<'a> {
    pub(crate) context: *mut SSL_CTX,
    _guard: RwLockWriteGuard<'a, ()>,
}

/// The context that a handle names.
pub(crate) fn get(handle: jlong) -> Result<Arc<Context>, Refusal> {
    CONTEXTS.get(handle).ok_or_else(|| {
        Refusal::exception(if handle == 0 {
            "the SSL context is 0".to_owned()
        } else {
            format!("{handle:#x} is no SSL context, or one that was freed")
        })
    })
}

impl Context {
    pub(crate) fn reading(&self) -> Reading<'_> {
        let guard = self.set_up.read().unwrap_or_else(PoisonError::into_inner);
        Reading { context: self.context, _guard: guard }
    }

    pub(crate) fn changing(&self) -> Changing<'_> {
        let guard = self.set_up.write().unwrap_or_else(PoisonError::into_inner);
        Changing { context: self.context, _guard: guard }
    }

    pub(crate) fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) fn level(&self) -> Level {
        Level::of(self.level.load(Ordering::Relaxed)).unwrap_or(Level::Unset)
    }

    /// The longest chain that is accepted, without the leaf.
    pub(crate) fn depth(&self) -> i32 {
        self.depth.load(Ordering::Relaxed)
    }

    /// Sets how clients are asked for certificates; a depth of 0 or less leaves the depth as it is.
    pub(crate) fn set_level(&self, level: Level, depth: i32) {
        self.level.store(level as i32, Ordering::Relaxed);
        if depth > 0 {
            self.depth.store(depth, Ordering::Relaxed);
        }
    }

    pub(crate) fn set_has_authorities(&self) {
        self.has_authorities.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_authorities(&self) -> bool {
        self.has_authorities.load(Ordering::Relaxed)
    }

    pub(crate) fn ocsp(&self) -> Ocsp {
        *self.ocsp.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_ocsp(&self, settings: Ocsp) {
        *self.ocsp.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    pub(crate) fn verifier(&self) -> Option<Arc<Verifier>> {
        self.verifier.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_verifier(&self, verifier: Option<Arc<Verifier>>) {
        *self.verifier.write().unwrap_or_else(PoisonError::into_inner) = verifier;
    }
}
