//! What `openssl-sys` does not declare, under the names and types of the OpenSSL manual. Macros of OpenSSL's
//! headers are given as the calls that they stand for.

use std::ffi::{c_char, c_int, c_long, c_uchar, c_uint, c_ulong, c_void};

pub(crate) use openssl_sys::*;

#[repr(C)]
pub(crate) struct SSL_CONF_CTX {
    _private: [u8; 0],
}

/// A `STACK_OF(SSL_CIPHER)`, as [`OPENSSL_sk_num`] takes it.
pub(crate) type Stack = OPENSSL_STACK;

pub(crate) type InfoCallback = unsafe extern "C" fn(*const SSL, c_int, c_int);
pub(crate) type CertVerifyCallback =
    unsafe extern "C" fn(*mut X509_STORE_CTX, *mut c_void) -> c_int;

unsafe extern "C" {
    #[cfg(test)]
    pub(crate) fn SSL_key_update(ssl: *mut SSL, kind: c_int) -> c_int;

    pub(crate) fn X509_STORE_CTX_get0_current_issuer(store: *const X509_STORE_CTX) -> *mut X509;
    pub(crate) fn X509_STORE_CTX_get0_store(store: *const X509_STORE_CTX) -> *mut X509_STORE;
    pub(crate) fn X509_email_free(list: *mut stack_st_OPENSSL_STRING);
    pub(crate) fn OCSP_request_add1_nonce(
        request: *mut OCSP_REQUEST,
        nonce: *mut c_uchar,
        length: c_int,
    ) -> c_int;
    pub(crate) fn OCSP_check_nonce(
        request: *mut OCSP_REQUEST,
        answer: *mut OCSP_BASICRESP,
    ) -> c_int;
    pub(crate) fn OSSL_HTTP_parse_url(
        url: *const c_char,
        tls: *mut c_int,
        user: *mut *mut c_char,
        host: *mut *mut c_char,
        port: *mut *mut c_char,
        port_number: *mut c_int,
        path: *mut *mut c_char,
        query: *mut *mut c_char,
        fragment: *mut *mut c_char,
    ) -> c_int;
    pub(crate) fn OSSL_HTTP_transfer(
        context: *mut *mut c_void,
        host: *const c_char,
        port: *const c_char,
        path: *const c_char,
        tls: c_int,
        proxy: *const c_char,
        no_proxy: *const c_char,
        write: *mut BIO,
        read: *mut BIO,
        update: Option<unsafe extern "C" fn(*mut BIO, *mut c_void, c_int, c_int) -> *mut BIO>,
        argument: *mut c_void,
        buffer_size: c_int,
        headers: *const c_void,
        content_type: *const c_char,
        request: *mut BIO,
        expected_type: *const c_char,
        expect_asn1: c_int,
        longest: usize,
        seconds: c_int,
        keep_alive: c_int,
    ) -> *mut BIO;

    pub(crate) fn ERR_peek_error() -> c_ulong;
    pub(crate) fn ERR_error_string_n(code: c_ulong, buffer: *mut c_char, length: usize);
    pub(crate) fn ERR_new();
    pub(crate) fn ERR_set_debug(file: *const c_char, line: c_int, function: *const c_char);
    pub(crate) fn ERR_set_error(library: c_int, reason: c_int, format: *const c_char, ...);

    pub(crate) fn SSL_CTX_set_info_callback(context: *mut SSL_CTX, callback: Option<InfoCallback>);
    pub(crate) fn SSL_CTX_set_cert_verify_callback(
        context: *mut SSL_CTX,
        callback: Option<CertVerifyCallback>,
        argument: *mut c_void,
    );
    pub(crate) fn SSL_CTX_set_timeout(context: *mut SSL_CTX, seconds: c_long) -> c_long;
    pub(crate) fn SSL_CTX_get_timeout(context: *const SSL_CTX) -> c_long;
    pub(crate) fn SSL_CTX_get_ciphers(context: *const SSL_CTX) -> *mut Stack;
    pub(crate) fn SSL_CTX_get_client_CA_list(context: *const SSL_CTX) -> *mut stack_st_X509_NAME;
    pub(crate) fn SSL_add_file_cert_subjects_to_stack(
        names: *mut stack_st_X509_NAME,
        file: *const c_char,
    ) -> c_int;
    pub(crate) fn SSL_get_ciphers(ssl: *const SSL) -> *mut Stack;
    pub(crate) fn SSL_CIPHER_get_kx_nid(cipher: *const SSL_CIPHER) -> c_int;
    pub(crate) fn SSL_CIPHER_get_auth_nid(cipher: *const SSL_CIPHER) -> c_int;
    pub(crate) fn SSL_get_options(ssl: *const SSL) -> u64;
    pub(crate) fn SSL_set_options(ssl: *mut SSL, options: u64) -> u64;
    pub(crate) fn SSL_want(ssl: *const SSL) -> c_int;
    pub(crate) fn SSL_has_pending(ssl: *const SSL) -> c_int;
    pub(crate) fn SSL_get_pending_cipher(ssl: *const SSL) -> *const SSL_CIPHER;
    pub(crate) fn SSL_CTX_set_default_passwd_cb(context: *mut SSL_CTX, callback: pem_password_cb);
    pub(crate) fn BIO_get_new_index() -> c_int;
    pub(crate) fn SSL_in_init(ssl: *const SSL) -> c_int;
    pub(crate) fn SSL_renegotiate(ssl: *mut SSL) -> c_int;
    pub(crate) fn SSL_renegotiate_pending(ssl: *const SSL) -> c_int;
    #[cfg(test)]
    pub(crate) fn CRYPTO_set_mem_functions(
        malloc: Option<unsafe extern "C" fn(usize, *const c_char, c_int) -> *mut c_void>,
        realloc: Option<
            unsafe extern "C" fn(*mut c_void, usize, *const c_char, c_int) -> *mut c_void,
        >,
        free: Option<unsafe extern "C" fn(*mut c_void, *const c_char, c_int)>,
    ) -> c_int;
    #[cfg(test)]
    pub(crate) fn SSL_set_post_handshake_auth(ssl: *mut SSL, value: c_int);
    pub(crate) fn SSL_verify_client_post_handshake(ssl: *mut SSL) -> c_int;
    pub(crate) fn SSL_set_verify_result(ssl: *mut SSL, result: c_long);

    pub(crate) fn SSL_CONF_CTX_new() -> *mut SSL_CONF_CTX;
    pub(crate) fn SSL_CONF_CTX_free(conf: *mut SSL_CONF_CTX);
    pub(crate) fn SSL_CONF_CTX_set_flags(conf: *mut SSL_CONF_CTX, flags: c_uint) -> c_uint;
    pub(crate) fn SSL_CONF_CTX_set_ssl_ctx(conf: *mut SSL_CONF_CTX, context: *mut SSL_CTX);
    pub(crate) fn SSL_CONF_CTX_finish(conf: *mut SSL_CONF_CTX) -> c_int;
    pub(crate) fn SSL_CONF_cmd(
        conf: *mut SSL_CONF_CTX,
        name: *const c_char,
        value: *const c_char,
    ) -> c_int;
    pub(crate) fn SSL_CONF_cmd_value_type(conf: *mut SSL_CONF_CTX, name: *const c_char) -> c_int;

    pub(crate) fn PEM_read_bio_X509_AUX(
        bio: *mut BIO,
        out: *mut *mut X509,
        callback: pem_password_cb,
        argument: *mut c_void,
    ) -> *mut X509;
    pub(crate) fn PEM_read_bio_Parameters(bio: *mut BIO, out: *mut *mut EVP_PKEY) -> *mut EVP_PKEY;
    pub(crate) fn d2i_PKCS12_bio(bio: *mut BIO, out: *mut *mut PKCS12) -> *mut PKCS12;
    pub(crate) fn PKCS12_verify_mac(
        file: *mut PKCS12,
        password: *const c_char,
        length: c_int,
    ) -> c_int;
    pub(crate) fn EVP_PKEY_get_group_name(
        key: *const EVP_PKEY,
        name: *mut c_char,
        size: usize,
        length: *mut usize,
    ) -> c_int;

    pub(crate) fn X509_STORE_CTX_get0_untrusted(store: *const X509_STORE_CTX) -> *mut Stack;
    pub(crate) fn X509_STORE_load_path(store: *mut X509_STORE, path: *const c_char) -> c_int;

    pub(crate) fn EVP_MD_fetch(
        library: *mut c_void,
        name: *const c_char,
        properties: *const c_char,
    ) -> *mut EVP_MD;
    pub(crate) fn EVP_MD_get0_provider(digest: *const EVP_MD) -> *const c_void;
    pub(crate) fn EVP_MD_free(digest: *mut EVP_MD);
    pub(crate) fn OSSL_PROVIDER_get0_name(provider: *const c_void) -> *const c_char;
    pub(crate) fn OPENSSL_thread_stop();
}

pub(crate) const ERR_LIB_SYS: c_int = 2;
pub(crate) const ERR_LIB_PEM_NUMBER: c_int = 9;
pub(crate) const PEM_R_NO_START_LINE: c_int = 108;
/// Set in packed codes of errors that the system gave.
pub(crate) const SYSTEM_ERROR: c_ulong = 0x8000_0000;

pub(crate) const SSL_CB_HANDSHAKE_DONE: c_int = 0x20;

pub(crate) const SSL_CTRL_SESS_NUMBER: c_int = 20;
pub(crate) const SSL_CTRL_SESS_CONNECT: c_int = 21;
pub(crate) const SSL_CTRL_SESS_CONNECT_GOOD: c_int = 22;
pub(crate) const SSL_CTRL_SESS_CONNECT_RENEGOTIATE: c_int = 23;
pub(crate) const SSL_CTRL_SESS_ACCEPT: c_int = 24;
pub(crate) const SSL_CTRL_SESS_ACCEPT_GOOD: c_int = 25;
pub(crate) const SSL_CTRL_SESS_ACCEPT_RENEGOTIATE: c_int = 26;
pub(crate) const SSL_CTRL_SESS_HIT: c_int = 27;
pub(crate) const SSL_CTRL_SESS_CB_HIT: c_int = 28;
pub(crate) const SSL_CTRL_SESS_MISSES: c_int = 29;
pub(crate) const SSL_CTRL_SESS_TIMEOUTS: c_int = 30;
pub(crate) const SSL_CTRL_SESS_CACHE_FULL: c_int = 31;
const SSL_CTRL_SET_TLSEXT_TICKET_KEYS: c_int = 59;
const SSL_CTRL_SET_SESS_CACHE_MODE_NUMBER: c_int = 44;
const SSL_CTRL_GET_SESS_CACHE_MODE: c_int = 45;

/// As SSL_want(3) says that more is wanted from the network.
pub(crate) const SSL_READING: c_int = 3;
pub(crate) const BIO_TYPE_SOURCE_SINK: c_int = 0x400;
pub(crate) const BIO_CTRL_DUP: c_int = 12;
pub(crate) const BIO_CTRL_PENDING: c_int = 10;
pub(crate) const BIO_CTRL_WPENDING: c_int = 13;
pub(crate) const NID_KX_RSA: c_int = 1037;
pub(crate) const NID_KX_ECDHE: c_int = 1038;
pub(crate) const NID_KX_DHE: c_int = 1039;
pub(crate) const NID_AUTH_RSA: c_int = 1046;
pub(crate) const NID_AUTH_ECDSA: c_int = 1047;
pub(crate) const NID_AUTH_DSS: c_int = 1049;
pub(crate) const NID_AUTH_NULL: c_int = 1053;

pub(crate) const SSL_CONF_TYPE_UNKNOWN: c_int = 0;
pub(crate) const SSL_CONF_TYPE_FILE: c_int = 2;
pub(crate) const SSL_CONF_TYPE_DIR: c_int = 3;

/// The macro SSL_CTX_set_tlsext_ticket_keys(3).
///
/// # Safety
/// `context` is live; `keys` has as many bytes as `length` says.
pub(crate) unsafe fn set_ticket_keys(
    context: *mut SSL_CTX,
    keys: *mut c_uchar,
    length: c_long,
) -> c_long {
    // SAFETY: the caller vouches for both.
    unsafe { SSL_CTX_ctrl(context, SSL_CTRL_SET_TLSEXT_TICKET_KEYS, length, keys.cast()) }
}

/// The macro SSL_CTX_set_session_cache_mode(3).
///
/// # Safety
/// `context` is live.
pub(crate) unsafe fn set_session_cache_mode(context: *mut SSL_CTX, mode: c_long) -> c_long {
    let nothing = std::ptr::null_mut();
    // SAFETY: the caller vouches for the context.
    unsafe { SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE_NUMBER, mode, nothing) }
}

/// The macro SSL_CTX_get_session_cache_mode(3).
///
/// # Safety
/// `context` is live.
pub(crate) unsafe fn session_cache_mode(context: *mut SSL_CTX) -> c_long {
    // SAFETY: the caller vouches for the context.
    unsafe { SSL_CTX_ctrl(context, SSL_CTRL_GET_SESS_CACHE_MODE, 0, std::ptr::null_mut()) }
}
