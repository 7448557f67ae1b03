//! The certificates and keys with which a context shows who it is, and the names of the CAs that it asks
//! clients for.
//!
//! A password belongs to the call that brings it: it is given to OpenSSL as the argument of a callback, is kept
//! nowhere, and nothing is ever asked for on the terminal.

mod owned;
mod read;

pub(crate) use owned::{Freed, Owned, freed, from_der, to_der};
pub(crate) use read::{Content, Secret, no_password};

use std::ffi::{CStr, c_char};
use std::ptr;

use crate::context::Context;
use crate::ffi::{self, EVP_PKEY, SSL_CTX, X509};
use crate::java::Refusal;
use crate::queue;

/// Java's slots: RSA, DSA (and ML-DSA), one that is not used, ECC.
const SLOTS: std::ops::Range<i32> = 0..4;
/// The slot whose file may bring parameters of key agreements along.
const RSA: i32 = 0;

/// Labels of PEM blocks with parameters.
const DH_LABELS: [&str; 2] = ["DH PARAMETERS", "X9.42 DH PARAMETERS"];
const EC_LABEL: &str = "EC PARAMETERS";

/// Sets the certificate of a slot and its key, which is in the same file where no other one is given. Returns false
/// where there is no such slot.
pub(crate) fn set_from_files(
    context: &Context,
    certificate: &CStr,
    key: Option<&CStr>,
    password: Option<&CStr>,
    slot: i32,
) -> Result<bool, Refusal> {
    if !SLOTS.contains(&slot) {
        return Ok(false);
    }
    let name = certificate.to_string_lossy();
    let content = Content::read(certificate).map_err(|error| {
        Refusal::exception(format!("Unable to load certificate {name} ({error})"))
    })?;
    let pkcs12 = read::is_pkcs12(certificate);
    let (owner, secret) = if pkcs12 {
        read::pkcs12(&content, &name, password)?
    } else {
        let secret = match key {
            None => read::key(&content, &name, password)?,
            Some(key) => key_file(key, password)?,
        };
        // What the search for the key has left does not belong to a failure of the certificate.
        queue::clear();
        (read::certificate(&content, &name)?, secret)
    };
    queue::clear();
    let changing = context.changing();
    // SAFETY: the context is live, and nobody else uses it meanwhile.
    unsafe { apply(changing.context, &owner, &secret, &name) }?;
    if slot == RSA && !pkcs12 {
        // SAFETY: as above.
        unsafe { set_parameters(changing.context, &content, &name) };
    }
    // SAFETY: as above.
    unsafe { ffi::SSL_CTX_set_dh_auto(changing.context, 1) };
    // OpenSSL tries several decoders, and the errors of those that did not fit are no errors.
    queue::clear();
    Ok(true)
}

fn key_file(file: &CStr, password: Option<&CStr>) -> Result<Owned<EVP_PKEY>, Refusal> {
    let name = file.to_string_lossy();
    let content = Content::read(file).map_err(|error| {
        Refusal::exception(format!("Unable to load certificate key {name} ({error})"))
    })?;
    read::key(&content, &name, password)
}

/// Sets the certificate of a slot, in DER, and its key, in PEM.
pub(crate) fn set_raw(
    context: &Context,
    certificate: &[u8],
    key: &[u8],
    slot: i32,
) -> Result<(), Refusal> {
    if !SLOTS.contains(&slot) {
        return Err(Refusal::exception("Invalid key type"));
    }
    let owner = parsed(certificate)?;
    let secret = read::key(key, "of the keystore", None)?;
    queue::clear();
    let changing = context.changing();
    // SAFETY: the context is live, and nobody else uses it meanwhile.
    unsafe { apply(changing.context, &owner, &secret, "of the keystore") }?;
    // SAFETY: as above.
    unsafe { ffi::SSL_CTX_set_dh_auto(changing.context, 1) };
    queue::clear();
    Ok(())
}

fn parsed(der: &[u8]) -> Result<Owned<X509>, Refusal> {
    from_der(der).ok_or_else(|| {
        Refusal::exception(format!("Error reading certificate ({})", queue::pop_text()))
    })
}

/// Gives a certificate and its key to a context.
///
/// # Safety
/// `context` is live, and nobody else uses it meanwhile.
unsafe fn apply(
    context: *mut SSL_CTX,
    certificate: &Owned<X509>,
    key: &Owned<EVP_PKEY>,
    name: &str,
) -> Result<(), Refusal> {
    let refused = |what: &str| Refusal::exception(format!("{what} {name} ({})", queue::pop_text()));
    // SAFETY: both are live; the context takes a reference of its own.
    if unsafe { ffi::SSL_CTX_use_certificate(context, certificate.as_ptr()) } != 1 {
        return Err(refused("Error setting certificate"));
    }
    // SAFETY: as above.
    if unsafe { ffi::SSL_CTX_use_PrivateKey(context, key.as_ptr()) } != 1 {
        return Err(refused("Error setting private key of certificate"));
    }
    // SAFETY: the context is live.
    if unsafe { ffi::SSL_CTX_check_private_key(context) } != 1 {
        return Err(refused("Private key does not match the certificate public key of"));
    }
    Ok(())
}

/// Sets the parameters that are in a certificate's file: those of DH, and the one curve of EC. The connections work
/// without them, so that those that OpenSSL refuses are said so on the log.
///
/// # Safety
/// `context` is live, and nobody else uses it meanwhile.
unsafe fn set_parameters(context: *mut SSL_CTX, pem: &[u8], name: &str) {
    if let Some(block) = DH_LABELS.iter().find_map(|label| read::block(pem, label)) {
        let done = read::parameters(block).is_some_and(|parameters| {
            // SAFETY: both are live; the context keeps them where it takes them.
            let done = unsafe { ffi::SSL_CTX_set0_tmp_dh_pkey(context, parameters.as_ptr()) };
            if done == 1 {
                parameters.into_raw();
            }
            done == 1
        });
        warn_unless(done, name, "DH");
    }
    if let Some(block) = read::block(pem, EC_LABEL) {
        let done = read::parameters(block).is_some_and(|parameters| {
            let mut group = [0_u8; 80];
            let place = group.as_mut_ptr().cast::<c_char>();
            let (size, length) = (group.len(), ptr::null_mut());
            // SAFETY: the parameters are live; the place has that size, and is ended by a NUL.
            let named =
                unsafe { ffi::EVP_PKEY_get_group_name(parameters.as_ptr(), place, size, length) };
            // SAFETY: the context is live; the name ends with a NUL, also where none was written.
            named == 1 && unsafe { ffi::SSL_CTX_set1_groups_list(context, place) } == 1
        });
        warn_unless(done, name, "EC");
    }
}

fn warn_unless(done: bool, file: &str, what: &str) {
    if !done {
        let error = queue::pop_text();
        tracing::warn!(file, error, "the {what} parameters of the certificate's file are not used");
    }
}

/// Replaces the certificates that are sent behind that of each slot by those of a file, without its first one where
/// that is the server's own. Returns whether there are any.
pub(crate) fn set_chain_file(context: &Context, file: &CStr, skip_first: bool) -> bool {
    let Ok(content) = Content::read(file) else { return false };
    let Some(chain) = read::certificates(&content) else { return false };
    if skip_first && chain.is_empty() {
        return false;
    }
    let changing = context.changing();
    let nothing = ptr::null_mut();
    // SAFETY: the context is live, and nobody else uses it meanwhile; the command takes nothing.
    unsafe { ffi::SSL_CTX_ctrl(changing.context, read::CLEAR_EXTRA_CHAIN, 0, nothing) };
    let mut added = false;
    for certificate in chain.into_iter().skip(skip_first.into()) {
        let pointer = certificate.as_ptr();
        // SAFETY: as above; the context keeps the certificate where it takes it.
        if unsafe { ffi::SSL_CTX_add_extra_chain_cert(changing.context, pointer) } != 1 {
            return false;
        }
        certificate.into_raw();
        added = true;
    }
    added
}

/// Adds a certificate, in DER, to those that are sent behind the one that was set last.
pub(crate) fn add_chain_raw(context: &Context, der: &[u8]) -> Result<(), Refusal> {
    let certificate = parsed(der)?;
    let changing = context.changing();
    let (command, pointer) = (ffi::SSL_CTRL_CHAIN_CERT, certificate.as_ptr().cast());
    // SAFETY: the context is live, and nobody else uses it meanwhile; it keeps the certificate where it takes
    // it.
    let done = unsafe { ffi::SSL_CTX_ctrl(changing.context, command, read::NOT_COPIED, pointer) };
    if done != 1 {
        return Err(Refusal::exception(format!(
            "Error adding certificate to chain ({})",
            queue::pop_text()
        )));
    }
    certificate.into_raw();
    Ok(())
}

/// Adds the subject of a certificate, in DER, to the CAs that clients are asked for.
pub(crate) fn add_client_ca_raw(context: &Context, der: &[u8]) -> Result<(), Refusal> {
    let certificate = parsed(der)?;
    let changing = context.changing();
    // SAFETY: the context is live, and nobody else uses it meanwhile; the subject is copied.
    if unsafe { ffi::SSL_CTX_add_client_CA(changing.context, certificate.as_ptr()) } != 1 {
        return Err(Refusal::exception(format!(
            "Error adding client CA certificate ({})",
            queue::pop_text()
        )));
    }
    Ok(())
}
