//! Every call into libssl and its libcrypto, with its prototype. Nothing else looks symbols up.

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_void};
use std::ptr::NonNull;

macro_rules! opaque {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])* #[repr(C)] pub(crate) struct $name([u8; 0]);)*
    };
}

opaque! {
    /// SSL_METHOD
    Method;
    /// SSL_CTX
    SslCtx;
    /// SSL
    Ssl;
    /// SSL_SESSION
    SslSession;
    /// BIO
    Bio;
    /// X509
    X509;
    /// X509_STORE
    X509Store;
    /// EVP_PKEY
    Pkey;
    /// PKCS12
    Pkcs12;
    /// EVP_MD
    Digest;
    /// OSSL_LIB_CTX
    LibraryContext;
    /// RSA
    Rsa;
}

macro_rules! symbols {
    (
        required { $($required:ident: $required_type:ty;)* }
        $(since $release:literal { $($optional:ident: $optional_type:ty;)* })*
    ) => {
        /// The functions of one libssl and its libcrypto, which stay mapped for the process's life.
        #[allow(non_snake_case)]
        pub(crate) struct Symbols {
            $(pub(crate) $required: $required_type,)*
            $($(pub(crate) $optional: Option<$optional_type>,)*)*
        }

        impl Symbols {
            /// Resolves the table by `address`.
            ///
            /// # Errors
            /// The name of the first required symbol that is missing.
            ///
            /// # Safety
            /// `address` must give the addresses of the functions of that name in a libssl or in
            /// the libcrypto it uses, and both must stay mapped for the life of the process.
            pub(crate) unsafe fn resolve(
                address: &dyn Fn(&CStr) -> Option<NonNull<c_void>>,
            ) -> Result<Self, &'static str> {
                Ok(Self {
                    $($required: {
                        let found = address(name(concat!(stringify!($required), "\0")))
                            .ok_or(stringify!($required))?;
                        // SAFETY: the caller vouches that this is the function of that name, whose
                        // prototype stands in the table.
                        unsafe { std::mem::transmute::<*mut c_void, $required_type>(found.as_ptr()) }
                    },)*
                    $($($optional: address(name(concat!(stringify!($optional), "\0"))).map(|found| {
                        // SAFETY: as above.
                        unsafe { std::mem::transmute::<*mut c_void, $optional_type>(found.as_ptr()) }
                    }),)*)*
                })
            }
        }
    };
}

fn name(terminated: &'static str) -> &'static CStr {
    CStr::from_bytes_with_nul(terminated.as_bytes()).unwrap_or_default()
}

/// Asks for the passphrase of a PEM block.
pub(crate) type PasswordCallback =
    unsafe extern "C" fn(*mut c_char, c_int, c_int, *mut c_void) -> c_int;

symbols! {
    required {
        // libssl
        SSL_CTX_check_private_key: unsafe extern "C" fn(*const SslCtx) -> c_int;
        SSL_CTX_free: unsafe extern "C" fn(*mut SslCtx);
        SSL_CTX_get_cert_store: unsafe extern "C" fn(*const SslCtx) -> *mut X509Store;
        SSL_CTX_new: unsafe extern "C" fn(*const Method) -> *mut SslCtx;
        SSL_CTX_set_cipher_list: unsafe extern "C" fn(*mut SslCtx, *const c_char) -> c_int;
        SSL_CTX_set_verify: unsafe extern "C" fn(
            *mut SslCtx, c_int, Option<crate::context::VerifyCallback>);
        SSL_CTX_use_PrivateKey: unsafe extern "C" fn(*mut SslCtx, *mut Pkey) -> c_int;
        SSL_CTX_use_certificate: unsafe extern "C" fn(*mut SslCtx, *mut X509) -> c_int;
        SSL_SESSION_free: unsafe extern "C" fn(*mut SslSession);
        SSL_do_handshake: unsafe extern "C" fn(*mut Ssl) -> c_int;
        SSL_free: unsafe extern "C" fn(*mut Ssl);
        SSL_get1_session: unsafe extern "C" fn(*mut Ssl) -> *mut SslSession;
        SSL_get_error: unsafe extern "C" fn(*const Ssl, c_int) -> c_int;
        SSL_get_version: unsafe extern "C" fn(*const Ssl) -> *const c_char;
        SSL_new: unsafe extern "C" fn(*mut SslCtx) -> *mut Ssl;
        SSL_pending: unsafe extern "C" fn(*const Ssl) -> c_int;
        SSL_read: unsafe extern "C" fn(*mut Ssl, *mut c_void, c_int) -> c_int;
        SSL_set_accept_state: unsafe extern "C" fn(*mut Ssl);
        SSL_set_bio: unsafe extern "C" fn(*mut Ssl, *mut Bio, *mut Bio);
        SSL_set_connect_state: unsafe extern "C" fn(*mut Ssl);
        SSL_set_fd: unsafe extern "C" fn(*mut Ssl, c_int) -> c_int;
        SSL_set_session: unsafe extern "C" fn(*mut Ssl, *mut SslSession) -> c_int;
        SSL_shutdown: unsafe extern "C" fn(*mut Ssl) -> c_int;
        SSL_write: unsafe extern "C" fn(*mut Ssl, *const c_void, c_int) -> c_int;
        // libcrypto
        BIO_ctrl: unsafe extern "C" fn(*mut Bio, c_int, c_long, *mut c_void) -> c_long;
        BIO_free: unsafe extern "C" fn(*mut Bio) -> c_int;
        BIO_new_mem_buf: unsafe extern "C" fn(*const c_void, c_int) -> *mut Bio;
        BIO_read: unsafe extern "C" fn(*mut Bio, *mut c_void, c_int) -> c_int;
        BIO_write: unsafe extern "C" fn(*mut Bio, *const c_void, c_int) -> c_int;
        ERR_clear_error: unsafe extern "C" fn();
        ERR_error_string_n: unsafe extern "C" fn(c_ulong, *mut c_char, usize);
        ERR_peek_error: unsafe extern "C" fn() -> c_ulong;
        ERR_peek_last_error: unsafe extern "C" fn() -> c_ulong;
        ERR_pop_to_mark: unsafe extern "C" fn() -> c_int;
        ERR_set_mark: unsafe extern "C" fn() -> c_int;
        EVP_PKEY_free: unsafe extern "C" fn(*mut Pkey);
        PEM_read_bio_PrivateKey: unsafe extern "C" fn(
            *mut Bio, *mut *mut Pkey, Option<PasswordCallback>, *mut c_void) -> *mut Pkey;
        PEM_read_bio_X509: unsafe extern "C" fn(
            *mut Bio, *mut *mut X509, Option<PasswordCallback>, *mut c_void) -> *mut X509;
        X509_STORE_add_cert: unsafe extern "C" fn(*mut X509Store, *mut X509) -> c_int;
        X509_free: unsafe extern "C" fn(*mut X509);
    }
    // On each release so far; deprecated since 3.0, and missing in builds without deprecated calls.
    since "0.9.0" {
        PEM_read_bio_RSAPrivateKey: unsafe extern "C" fn(
            *mut Bio, *mut *mut Rsa, Option<PasswordCallback>, *mut c_void) -> *mut Rsa;
        RSA_free: unsafe extern "C" fn(*mut Rsa);
        RSA_private_decrypt: unsafe extern "C" fn(
            c_int, *const u8, *mut u8, *mut Rsa, c_int) -> c_int;
        RSA_public_encrypt: unsafe extern "C" fn(
            c_int, *const u8, *mut u8, *mut Rsa, c_int) -> c_int;
        RSA_size: unsafe extern "C" fn(*const Rsa) -> c_int;
    }
    // Gone in 1.1.0. AWS-LC has some of them still, and does not need them.
    since "1.0.0" {
        OPENSSL_add_all_algorithms_noconf: unsafe extern "C" fn();
        SSL_library_init: unsafe extern "C" fn() -> c_int;
        SSL_load_error_strings: unsafe extern "C" fn();
        SSLv23_client_method: unsafe extern "C" fn() -> *const Method;
        SSLv23_server_method: unsafe extern "C" fn() -> *const Method;
    }
    // Settings by number, on every OpenSSL; BoringSSL and AWS-LC have functions instead.
    since "0.9.8" {
        SSL_CTX_ctrl: unsafe extern "C" fn(*mut SslCtx, c_int, c_long, *mut c_void) -> c_long;
        SSL_ctrl: unsafe extern "C" fn(*mut Ssl, c_int, c_long, *mut c_void) -> c_long;
    }
    since "1.1.0" {
        OPENSSL_init_ssl: unsafe extern "C" fn(u64, *const c_void) -> c_int;
        SSL_session_reused: unsafe extern "C" fn(*const Ssl) -> c_int;
        TLS_client_method: unsafe extern "C" fn() -> *const Method;
        TLS_server_method: unsafe extern "C" fn() -> *const Method;
    }
    since "3.0" {
        EVP_MD_fetch: unsafe extern "C" fn(
            *mut LibraryContext, *const c_char, *const c_char) -> *mut Digest;
        EVP_MD_free: unsafe extern "C" fn(*mut Digest);
    }
    since "AWS-LC 1.0" {
        SSL_CTX_add1_chain_cert: unsafe extern "C" fn(*mut SslCtx, *mut X509) -> c_int;
        SSL_CTX_set_max_proto_version: unsafe extern "C" fn(*mut SslCtx, u16) -> c_int;
        SSL_CTX_set_min_proto_version: unsafe extern "C" fn(*mut SslCtx, u16) -> c_int;
        SSL_CTX_set_mode: unsafe extern "C" fn(*mut SslCtx, c_uint) -> c_uint;
    }
    // For `faults` and connections in memory: on each release, and no server needs them.
    since "0.9.6" {
        SSL_CTX_load_verify_locations: unsafe extern "C" fn(
            *mut SslCtx, *const c_char, *const c_char) -> c_int;
        BIO_new_bio_pair: unsafe extern "C" fn(
            *mut *mut Bio, usize, *mut *mut Bio, usize) -> c_int;
        BIO_new_file: unsafe extern "C" fn(*const c_char, *const c_char) -> *mut Bio;
        EVP_get_digestbyname: unsafe extern "C" fn(*const c_char) -> *const Digest;
        PKCS12_free: unsafe extern "C" fn(*mut Pkcs12);
        X509_get_pubkey: unsafe extern "C" fn(*mut X509) -> *mut Pkey;
        X509_verify: unsafe extern "C" fn(*mut X509, *mut Pkey) -> c_int;
        d2i_PKCS12: unsafe extern "C" fn(
            *mut *mut Pkcs12, *mut *const u8, c_long) -> *mut Pkcs12;
        d2i_X509: unsafe extern "C" fn(*mut *mut X509, *mut *const u8, c_long) -> *mut X509;
    }
    // For `exercise`: no server needs them.
    since "0.9.7" {
        CONF_modules_load_file: unsafe extern "C" fn(
            *const c_char, *const c_char, c_ulong) -> c_int;
        EVP_DigestInit_ex: unsafe extern "C" fn(*mut c_void, *const c_void, *mut c_void) -> c_int;
        EVP_MD_CTX_create: unsafe extern "C" fn() -> *mut c_void;
        EVP_MD_CTX_destroy: unsafe extern "C" fn(*mut c_void);
        EVP_sha256: unsafe extern "C" fn() -> *const c_void;
        RAND_bytes: unsafe extern "C" fn(*mut u8, c_int) -> c_int;
    }
    since "1.1.0" {
        EVP_MD_CTX_free: unsafe extern "C" fn(*mut c_void);
        EVP_MD_CTX_new: unsafe extern "C" fn() -> *mut c_void;
    }
    since "3.0" {
        EVP_CIPHER_fetch: unsafe extern "C" fn(
            *mut c_void, *const c_char, *const c_char) -> *mut c_void;
        EVP_CIPHER_free: unsafe extern "C" fn(*mut c_void);
    }
}

impl std::fmt::Debug for Symbols {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Symbols").finish_non_exhaustive()
    }
}
