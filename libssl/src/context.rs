//! Contexts: a certificate and the settings that the connections of a server or client share.

use std::ffi::{CString, c_int, c_long, c_uint, c_void};
use std::ptr::NonNull;

use crate::load::Tls;
use crate::pem::{Certificate, Key, Source};
use crate::symbols::SslCtx;

/// Called by the library for each certificate of a chain while it verifies: whether that
/// certificate passed so far, and the X509_STORE_CTX. The result replaces the verdict.
///
/// See [SSL_CTX_set_verify(3)](https://docs.openssl.org/master/man3/SSL_CTX_set_verify/).
pub type VerifyCallback = extern "C" fn(preverify_ok: c_int, store: *mut c_void) -> c_int;

/// Why a context could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContextError {
    /// The library made no context.
    #[error("{version} made no context: {reason}")]
    New {
        /// Which library.
        version: String,
        /// Its reason.
        reason: String,
    },
    /// The certificate is not PEM, or the library refuses it.
    #[error(
        "the certificate cannot be used: {reason}; it must be an X.509 certificate in PEM form"
    )]
    Certificate {
        /// The library's reason.
        reason: String,
    },
    /// The key is not PEM, or the library refuses it.
    #[error(
        "the private key cannot be used: {reason}; it must be a private key in PEM form without a passphrase"
    )]
    PrivateKey {
        /// The library's reason.
        reason: String,
    },
    /// Key and certificate are not of one pair.
    #[error(
        "the private key does not belong to the certificate: {reason}; give the two files of one pair"
    )]
    Mismatch {
        /// The library's reason.
        reason: String,
    },
    /// No cipher of the list is known.
    #[error("no cipher of {list:?} is known to {version}: {reason}")]
    Ciphers {
        /// What was asked for.
        list: String,
        /// Which library.
        version: String,
        /// Its reason.
        reason: String,
    },
    /// The library has no way to make this setting.
    #[error("{version} cannot set {setting}")]
    Unsupported {
        /// Which library.
        version: String,
        /// What was to be set.
        setting: &'static str,
    },
}

/// Protocol versions, oldest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Protocol {
    Ssl3,
    Tls1_0,
    Tls1_1,
    Tls1_2,
    Tls1_3,
}

impl Protocol {
    const ALL: [Self; 5] = [Self::Ssl3, Self::Tls1_0, Self::Tls1_1, Self::Tls1_2, Self::Tls1_3];

    /// The version number on the wire.
    fn number(self) -> u16 {
        0x0300 + self as u16
    }

    /// SSL_OP_NO_SSLv3 and its like, in 1.0.x; the last one is not known there.
    fn option(self) -> c_long {
        match self {
            Self::Ssl3 => 0x0200_0000,
            Self::Tls1_0 => 0x0400_0000,
            Self::Tls1_1 => 0x1000_0000,
            Self::Tls1_2 => 0x0800_0000,
            Self::Tls1_3 => 0,
        }
    }
}

// Numbers of SSL_CTX_ctrl(3), the same since 0.9.8 or since they exist.
const CTRL_EXTRA_CHAIN_CERT: c_int = 14;
const CTRL_OPTIONS: c_int = 32;
const CTRL_MODE: c_int = 33;
const CTRL_SET_ECDH_AUTO: c_int = 94;
const CTRL_SET_MIN_PROTO_VERSION: c_int = 123;
const CTRL_SET_MAX_PROTO_VERSION: c_int = 124;

/// SSL_OP_NO_COMPRESSION.
const OPTION_NO_COMPRESSION: c_long = 0x0002_0000;

/// SSL_MODE_ENABLE_PARTIAL_WRITE and SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER: a write that would block
/// may be repeated from another buffer, which safe Rust cannot prevent.
const MODE: c_uint = 1 | 2;

const VERIFY_NONE: c_int = 0;
const VERIFY_PEER: c_int = 1;

/// A certificate and settings; connections are made from it, on any thread.
///
/// See [SSL_CTX_new(3)](https://docs.openssl.org/master/man3/SSL_CTX_new/).
#[derive(Debug)]
#[doc(alias = "SSL_CTX")]
pub struct Context {
    pub(crate) tls: &'static Tls,
    pub(crate) raw: NonNull<SslCtx>,
    pub(crate) is_server: bool,
}

// SAFETY: an SSL_CTX belongs to no thread; its reference count and caches are guarded by locks of
// the library (on 1.0.x: of the application, which it must have installed before it has threads).
unsafe impl Send for Context {}
// SAFETY: as above; settings are changed by `ContextBuilder` only, which is not shared.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: this is the reference that SSL_CTX_new gave; connections hold their own.
        unsafe { (self.tls.symbols.SSL_CTX_free)(self.raw.as_ptr()) };
    }
}

impl Context {
    /// Starts a server's context: any protocol that the library speaks by default, no client
    /// certificates, session cache and tickets as the library has them by default.
    ///
    /// # Errors
    /// [`ContextError::New`].
    #[doc(alias = "TLS_server_method")]
    pub fn server(tls: &'static Tls) -> Result<ContextBuilder, ContextError> {
        ContextBuilder::new(tls, true)
    }

    /// Starts a client's context, which verifies nothing unless told to.
    ///
    /// # Errors
    /// [`ContextError::New`].
    #[doc(alias = "TLS_client_method")]
    pub fn client(tls: &'static Tls) -> Result<ContextBuilder, ContextError> {
        ContextBuilder::new(tls, false)
    }

    /// The library this context belongs to.
    #[must_use]
    pub fn tls(&self) -> &'static Tls {
        self.tls
    }
}

/// Makes a [`Context`]. No method leaves errors on the calling thread's queue.
#[derive(Debug)]
#[must_use]
pub struct ContextBuilder(Context);

impl ContextBuilder {
    fn new(tls: &'static Tls, is_server: bool) -> Result<Self, ContextError> {
        let symbols = &tls.symbols;
        let method = if is_server {
            symbols.TLS_server_method.or(symbols.SSLv23_server_method)
        } else {
            symbols.TLS_client_method.or(symbols.SSLv23_client_method)
        };
        let version = || tls.version().to_owned();
        let Some(method) = method else {
            let reason = "it has no method for all protocols".to_owned();
            return Err(ContextError::New { version: version(), reason });
        };
        // SAFETY: takes nothing and gives a static table.
        let method = unsafe { method() };
        let (raw, error) = tls.rolled_back(|| {
            // SAFETY: `method` is a method of this library.
            unsafe { (symbols.SSL_CTX_new)(method) }
        });
        let raw = NonNull::new(raw).ok_or_else(|| ContextError::New {
            version: version(),
            reason: tls.error_text(error),
        })?;
        let mut builder = Self(Context { tls, raw, is_server });
        builder.mode()?;
        if tls.is_1_0() {
            // Off by default since 1.1.0 (CRIME); some builds of 1.0.x have it on.
            builder.control(CTRL_OPTIONS, OPTION_NO_COMPRESSION, std::ptr::null_mut());
        }
        if is_server && tls.is_1_0() {
            // The curve is chosen by itself since 1.1.0; before, without this, there is no ECDHE.
            builder.control(CTRL_SET_ECDH_AUTO, 1, std::ptr::null_mut());
        }
        Ok(builder)
    }

    /// Uses the first certificate of `pem`, and the others as its chain.
    ///
    /// # Errors
    /// [`ContextError::Certificate`].
    #[doc(alias = "SSL_CTX_use_certificate")]
    pub fn certificate(self, pem: &[u8]) -> Result<Self, ContextError> {
        let tls = self.0.tls;
        let (used, error) = tls.rolled_back(|| {
            let mut source = Source::new(tls, pem)?;
            let first = source.certificate()?;
            // SAFETY: context and certificate are live; the context takes a reference of its own.
            let used = unsafe {
                (tls.symbols.SSL_CTX_use_certificate)(self.0.raw.as_ptr(), first.raw.as_ptr())
            };
            let chained = source.certificates().all(|further| self.chain(further));
            (used == 1 && chained).then_some(())
        });
        match used {
            Some(()) => Ok(self),
            None => Err(ContextError::Certificate { reason: tls.error_text(error) }),
        }
    }

    /// Adds a certificate to the chain.
    fn chain(&self, certificate: Certificate) -> bool {
        let tls = self.0.tls;
        if tls.symbols.SSL_CTX_ctrl.is_some() {
            let raw = certificate.raw.as_ptr().cast();
            let added = self.control(CTRL_EXTRA_CHAIN_CERT, 0, raw) == 1;
            if added {
                // The context has taken the reference over.
                std::mem::forget(certificate);
            }
            return added;
        }
        let Some(add) = tls.symbols.SSL_CTX_add1_chain_cert else { return false };
        // SAFETY: both are live; the context takes a reference of its own.
        unsafe { add(self.0.raw.as_ptr(), certificate.raw.as_ptr()) == 1 }
    }

    /// Uses the private key in `pem`, which must belong to the certificate given before.
    ///
    /// # Errors
    /// [`ContextError::PrivateKey`], [`ContextError::Mismatch`].
    #[doc(alias = "SSL_CTX_use_PrivateKey")]
    pub fn private_key(self, pem: &[u8]) -> Result<Self, ContextError> {
        let tls = self.0.tls;
        let (key, error) = tls.rolled_back(|| Key::read(tls, pem));
        let Some(key) = key else {
            return Err(ContextError::PrivateKey { reason: tls.error_text(error) });
        };
        let (used, error) = tls.rolled_back(|| {
            // SAFETY: context and key are live; the context takes a reference of its own.
            unsafe { (tls.symbols.SSL_CTX_use_PrivateKey)(self.0.raw.as_ptr(), key.raw.as_ptr()) }
        });
        if used != 1 {
            return Err(ContextError::Mismatch { reason: tls.error_text(error) });
        }
        let (fits, error) = tls.rolled_back(|| {
            // SAFETY: the context is live.
            unsafe { (tls.symbols.SSL_CTX_check_private_key)(self.0.raw.as_ptr()) }
        });
        if fits != 1 {
            return Err(ContextError::Mismatch { reason: tls.error_text(error) });
        }
        Ok(self)
    }

    /// Trusts the certificates in `pem`.
    ///
    /// # Errors
    /// [`ContextError::Certificate`].
    #[doc(alias = "X509_STORE_add_cert")]
    pub fn trust(self, pem: &[u8]) -> Result<Self, ContextError> {
        let tls = self.0.tls;
        let (trusted, error) = tls.rolled_back(|| {
            // SAFETY: the context is live and owns its store.
            let store = unsafe { (tls.symbols.SSL_CTX_get_cert_store)(self.0.raw.as_ptr()) };
            let mut count = 0;
            for certificate in Source::new(tls, pem)?.certificates() {
                // SAFETY: store and certificate are live; the store takes a reference.
                let added =
                    unsafe { (tls.symbols.X509_STORE_add_cert)(store, certificate.raw.as_ptr()) };
                count += 1;
                if added != 1 {
                    return None;
                }
            }
            (count > 0).then_some(())
        });
        match trusted {
            Some(()) => Ok(self),
            None => Err(ContextError::Certificate { reason: tls.error_text(error) }),
        }
    }

    /// Verifies the peer's certificate, or not (the default).
    #[doc(alias = "SSL_CTX_set_verify")]
    pub fn verify(self, verify: bool) -> Self {
        self.set_verify(if verify { VERIFY_PEER } else { VERIFY_NONE }, None);
        self
    }

    /// Verifies the peer's certificate with a callback of the program.
    #[doc(alias = "SSL_CTX_set_verify")]
    pub fn verify_with(self, callback: VerifyCallback) -> Self {
        self.set_verify(VERIFY_PEER, Some(callback));
        self
    }

    fn set_verify(&self, mode: c_int, callback: Option<VerifyCallback>) {
        // SAFETY: the context is live; a callback is a function of this program, which stays.
        unsafe { (self.0.tls.symbols.SSL_CTX_set_verify)(self.0.raw.as_ptr(), mode, callback) };
    }

    /// Which ciphers of TLS 1.2 and older to use, in OpenSSL's notation.
    ///
    /// See [SSL_CTX_set_cipher_list(3)](https://docs.openssl.org/master/man3/SSL_CTX_set_cipher_list/).
    ///
    /// # Errors
    /// [`ContextError::Ciphers`].
    #[doc(alias = "SSL_CTX_set_cipher_list")]
    pub fn cipher_list(self, list: &str) -> Result<Self, ContextError> {
        let tls = self.0.tls;
        let refuse = |reason| {
            let (list, version) = (list.to_owned(), tls.version().to_owned());
            Err(ContextError::Ciphers { list, version, reason })
        };
        let Ok(text) = CString::new(list) else {
            return refuse("it contains a NUL byte".to_owned());
        };
        let (set, error) = tls.rolled_back(|| {
            // SAFETY: the context is live; the text is NUL-terminated and is copied.
            unsafe { (tls.symbols.SSL_CTX_set_cipher_list)(self.0.raw.as_ptr(), text.as_ptr()) }
        });
        if set == 1 { Ok(self) } else { refuse(tls.error_text(error)) }
    }

    /// The oldest protocol to speak.
    ///
    /// See [SSL_CTX_set_min_proto_version(3)](https://docs.openssl.org/master/man3/SSL_CTX_set_min_proto_version/).
    ///
    /// # Errors
    /// [`ContextError::Unsupported`].
    #[doc(alias = "SSL_CTX_set_min_proto_version")]
    pub fn min_protocol(self, oldest: Protocol) -> Result<Self, ContextError> {
        let function = self.0.tls.symbols.SSL_CTX_set_min_proto_version;
        self.protocol_bound(CTRL_SET_MIN_PROTO_VERSION, function, oldest, |known| known < oldest)
    }

    /// The newest protocol to speak.
    ///
    /// # Errors
    /// [`ContextError::Unsupported`].
    #[doc(alias = "SSL_CTX_set_max_proto_version")]
    pub fn max_protocol(self, newest: Protocol) -> Result<Self, ContextError> {
        let function = self.0.tls.symbols.SSL_CTX_set_max_proto_version;
        self.protocol_bound(CTRL_SET_MAX_PROTO_VERSION, function, newest, |known| known > newest)
    }

    fn protocol_bound(
        self,
        control: c_int,
        function: Option<unsafe extern "C" fn(*mut SslCtx, u16) -> c_int>,
        bound: Protocol,
        excluded: impl Fn(Protocol) -> bool,
    ) -> Result<Self, ContextError> {
        let tls = self.0.tls;
        let (set, _) = tls.rolled_back(|| {
            if let Some(function) = function {
                // SAFETY: the context is live.
                return unsafe { function(self.0.raw.as_ptr(), bound.number()) } == 1;
            }
            if !tls.is_1_0() {
                return self.control(control, bound.number().into(), std::ptr::null_mut()) == 1;
            }
            // 1.0.x knows no bounds, only protocols to leave out.
            let out = Protocol::ALL.into_iter().filter(|known| excluded(*known));
            let options = out.fold(0, |options, known| options | known.option());
            self.control(CTRL_OPTIONS, options, std::ptr::null_mut());
            true
        });
        if set {
            return Ok(self);
        }
        Err(ContextError::Unsupported {
            version: tls.version().to_owned(),
            setting: "the protocol versions",
        })
    }

    fn mode(&mut self) -> Result<(), ContextError> {
        let tls = self.0.tls;
        if let Some(function) = tls.symbols.SSL_CTX_set_mode {
            // SAFETY: the context is live.
            unsafe { function(self.0.raw.as_ptr(), MODE) };
            return Ok(());
        }
        if tls.symbols.SSL_CTX_ctrl.is_none() {
            let version = tls.version().to_owned();
            return Err(ContextError::Unsupported { version, setting: "the write mode" });
        }
        self.control(CTRL_MODE, MODE.into(), std::ptr::null_mut());
        Ok(())
    }

    /// SSL_CTX_ctrl, 0 where the library has none.
    ///
    /// `pointer` is null or what the control asks for: each caller's own duty, within this module.
    fn control(&self, control: c_int, number: c_long, pointer: *mut c_void) -> c_long {
        let Some(function) = self.0.tls.symbols.SSL_CTX_ctrl else { return 0 };
        // SAFETY: the context is live; the controls used here take a number, or a live certificate
        // whose reference they take over when they succeed.
        unsafe { function(self.0.raw.as_ptr(), control, number, pointer) }
    }

    /// The context, whose settings cannot be changed any more.
    #[must_use]
    pub fn build(self) -> Context {
        self.0
    }
}
