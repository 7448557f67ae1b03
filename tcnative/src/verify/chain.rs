//! OpenSSL's own check of a chain, with authorities and revocation lists from files.

use std::ffi::{CStr, c_int};
use std::panic::catch_unwind;
use std::ptr;

use super::{Level, connection, ocsp};
use crate::context::Context;
use crate::ffi::{self, X509_STORE_CTX};
use crate::java::Refusal;
use crate::queue;

/// A number that is none of OpenSSL's, so that the peer is told "certificate unknown".
const REVOCATION_LIST_EXPIRED: c_int = -1;

/// Faults that only say that the authority is not known.
const UNKNOWN_AUTHORITY: [c_int; 5] = [
    ffi::X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT,
    ffi::X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
    ffi::X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,
    ffi::X509_V_ERR_CERT_UNTRUSTED,
    ffi::X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE,
];

/// Called by OpenSSL for each certificate of a chain, and for each fault.
pub(super) extern "C" fn on_verify(good: c_int, store: *mut X509_STORE_CTX) -> c_int {
    // A panic is no reason to let somebody in.
    catch_unwind(|| verify(good == 1, store).into()).unwrap_or(0)
}

fn verify(good: bool, store: *mut X509_STORE_CTX) -> bool {
    // SAFETY: OpenSSL calls with a connection that this thread uses.
    let Some(connection) = (unsafe { connection(store) }) else { return false };
    let context = connection.context();
    // The client has answered to the question for its certificate.
    connection.complete_pha();
    // SAFETY: OpenSSL's, and live during the call.
    let fault = unsafe { ffi::X509_STORE_CTX_get_error(store) };
    // SAFETY: as above.
    let depth = unsafe { ffi::X509_STORE_CTX_get_error_depth(store) };
    let level = context.level();
    if matches!(level, Level::None | Level::Unset) {
        return true;
    }
    let mut good = good;
    if level == Level::OptionalNoCa
        && (fault == ffi::X509_V_OK || UNKNOWN_AUTHORITY.contains(&fault))
    {
        // SAFETY: as above; the SSL is live.
        unsafe { ffi::SSL_set_verify_result(connection.ssl(), ffi::X509_V_OK.into()) };
        good = true;
    }
    if fault == ffi::X509_V_ERR_CRL_HAS_EXPIRED {
        // SAFETY: as above.
        unsafe { ffi::X509_STORE_CTX_set_error(store, REVOCATION_LIST_EXPIRED) };
        return false;
    }
    if depth > context.depth() {
        // SAFETY: as above.
        unsafe { ffi::X509_STORE_CTX_set_error(store, ffi::X509_V_ERR_CERT_CHAIN_TOO_LONG) };
        return false;
    }
    let asks = context.ocsp();
    if good && fault == ffi::X509_V_OK && asks.asks {
        return ocsp::accepts(store, &asks);
    }
    good
}

fn text(path: Option<&CStr>) -> *const std::ffi::c_char {
    path.map_or(ptr::null(), CStr::as_ptr)
}

fn names(file: Option<&CStr>, folder: Option<&CStr>) -> String {
    let names: Vec<_> = [file, folder].into_iter().flatten().map(CStr::to_string_lossy).collect();
    names.join(" and ")
}

/// Trusts the authorities of a PEM file and of a folder with hashed names; a server tells clients of those of the
/// file.
pub(crate) fn set_authorities(
    context: &Context,
    file: Option<&CStr>,
    folder: Option<&CStr>,
) -> Result<(), Refusal> {
    let failed = || {
        Refusal::exception(format!(
            "Unable to configure the CA certificates of {}: {}",
            names(file, folder),
            queue::pop_text()
        ))
    };
    let changing = context.changing();
    // SAFETY: the context is live, and nobody else uses it meanwhile; both texts end with a NUL, or are null.
    let loaded =
        unsafe { ffi::SSL_CTX_load_verify_locations(changing.context, text(file), text(folder)) };
    if loaded != 1 {
        return Err(failed());
    }
    context.set_has_authorities();
    let Some(file) = file.filter(|_| context.mode().serves()) else { return Ok(()) };
    // SAFETY: as above.
    let known = unsafe { ffi::SSL_CTX_get_client_CA_list(changing.context) };
    if known.is_null() {
        // SAFETY: the text ends with a NUL.
        let list = unsafe { ffi::SSL_load_client_CA_file(file.as_ptr()) };
        if list.is_null() {
            return Err(failed());
        }
        // SAFETY: as above; the list is the context's now.
        unsafe { ffi::SSL_CTX_set_client_CA_list(changing.context, list) };
        return Ok(());
    }
    // SAFETY: the list is the context's, which nobody else uses; the text ends with a NUL.
    let added = unsafe { ffi::SSL_add_file_cert_subjects_to_stack(known, file.as_ptr()) };
    if added == 1 { Ok(()) } else { Err(failed()) }
}

/// Checks all certificates against the revocation lists of a PEM file and of a folder with hashed names.
pub(crate) fn set_revocation(
    context: &Context,
    file: Option<&CStr>,
    folder: Option<&CStr>,
) -> Result<(), Refusal> {
    let failed = |path: &CStr| {
        Refusal::exception(format!(
            "Unable to load the certificate revocation lists of {}: {}",
            path.to_string_lossy(),
            queue::pop_text()
        ))
    };
    let changing = context.changing();
    // SAFETY: the context is live, and nobody else uses it meanwhile; the store is the context's.
    let store = unsafe { ffi::SSL_CTX_get_cert_store(changing.context) };
    if store.is_null() {
        return Err(Refusal::exception("the SSL context has no certificate store"));
    }
    if let Some(file) = file {
        // SAFETY: takes nothing, and gives a constant.
        let method = unsafe { ffi::X509_LOOKUP_file() };
        // SAFETY: the store is live.
        let lookup = unsafe { ffi::X509_STORE_add_lookup(store, method) };
        if lookup.is_null() {
            return Err(failed(file));
        }
        const PEM: c_int = 1;
        // SAFETY: the lookup is the store's; the text ends with a NUL.
        if unsafe { ffi::X509_load_crl_file(lookup, file.as_ptr(), PEM) } < 1 {
            return Err(failed(file));
        }
    }
    if let Some(folder) = folder {
        // SAFETY: the store is live; the text ends with a NUL.
        if unsafe { ffi::X509_STORE_load_path(store, folder.as_ptr()) } != 1 {
            return Err(failed(folder));
        }
    }
    let flags = ffi::X509_V_FLAG_CRL_CHECK | ffi::X509_V_FLAG_CRL_CHECK_ALL;
    // SAFETY: the store is live, and nobody else uses it.
    unsafe { ffi::X509_STORE_set_flags(store, flags) };
    Ok(())
}
