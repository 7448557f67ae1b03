//! Which ciphers may be used, and what Java calls them.

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_int};
use std::sync::{Arc, Mutex, PoisonError};

use jni::Env;
use jni::objects::JString;
use jni::refs::Global;
use jni::sys::jobject;

use super::Context;
use crate::connection::Connection;
use crate::ffi::{self, SSL_CIPHER, Stack};
use crate::java::{self, Refusal};
use crate::queue;

/// In front of each list: ciphers without authentication or encryption are never allowed.
const NEVER: &[u8] = b"!aNULL:!eNULL:!EXP:";

type Name = Arc<Global<JString<'static>>>;

/// The names that Java was given, by the address of OpenSSL's constant text: there are some two hundred, and Java asks
/// for a hundred of them for each connection.
static NAMES: Mutex<Option<HashMap<usize, Name>>> = Mutex::new(None);

/// A list for OpenSSL, without what is never allowed.
pub(crate) fn permitted(list: &CStr) -> CString {
    // Neither part has a NUL in it.
    CString::new([NEVER, list.to_bytes()].concat()).unwrap_or_default()
}

/// The names of ciphers as a new `String[]`; null for none.
pub(crate) fn array(env: &mut Env<'_>, ciphers: *mut Stack) -> Result<jobject, Refusal> {
    // SAFETY: a stack of OpenSSL's, or null; it belongs to a connection or context that stays.
    let count = unsafe { ffi::OPENSSL_sk_num(ciphers) };
    if count <= 0 {
        return Err(Refusal::Silent);
    }
    let mut names = Vec::new();
    for place in 0..count {
        names.push(name(env, ciphers, place)?);
    }
    java::array_of_texts(env, &names)
}

fn name(env: &mut Env<'_>, ciphers: *mut Stack, place: c_int) -> Result<Name, Refusal> {
    // SAFETY: as in `array`; the place is one of the stack's.
    let cipher = unsafe { ffi::OPENSSL_sk_value(ciphers, place) };
    // SAFETY: the stack is one of ciphers, which are constants of OpenSSL's.
    let name = unsafe { ffi::SSL_CIPHER_get_name(cipher.cast::<SSL_CIPHER>()) };
    let known = {
        let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        names.as_ref().and_then(|names| names.get(&(name as usize)).cloned())
    };
    if let Some(known) = known {
        return Ok(known);
    }
    // SAFETY: a constant text of OpenSSL's.
    let text = unsafe { CStr::from_ptr(name) };
    let local = JString::from_str(env, text.to_string_lossy())?;
    let made = Arc::new(env.new_global_ref(&local)?);
    env.delete_local_ref(local);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.get_or_insert_default().insert(name as usize, made.clone());
    Ok(made)
}

/// Calls OpenSSL with a list of Java's. Without a list nothing is changed.
fn set(
    env: &mut Env<'_>,
    list: &JString<'_>,
    work: impl FnOnce(&CStr) -> c_int,
) -> Result<bool, Refusal> {
    let list = java::optional_text(env, "the list of ciphers", list)?.ok_or(Refusal::Silent)?;
    if work(&list) == 1 {
        return Ok(true);
    }
    Err(Refusal::exception(format!(
        "Unable to configure permitted SSL ciphers ({})",
        queue::pop_text()
    )))
}

/// Ciphers up to TLS 1.2.
pub(crate) fn set_on_context(
    env: &mut Env<'_>,
    context: &Context,
    list: &JString<'_>,
) -> Result<bool, Refusal> {
    let changing = context.changing();
    // SAFETY: the context is live, and nobody uses it meanwhile; the list ends with a NUL.
    set(env, list, |list| unsafe {
        ffi::SSL_CTX_set_cipher_list(changing.context, permitted(list).as_ptr())
    })
}

/// Cipher suites of TLS 1.3.
pub(crate) fn set_suites_on_context(
    env: &mut Env<'_>,
    context: &Context,
    list: &JString<'_>,
) -> Result<bool, Refusal> {
    let changing = context.changing();
    // SAFETY: as above.
    set(env, list, |list| unsafe { ffi::SSL_CTX_set_ciphersuites(changing.context, list.as_ptr()) })
}

/// Ciphers up to TLS 1.2.
pub(crate) fn set_on_connection(
    env: &mut Env<'_>,
    connection: &Connection,
    list: &JString<'_>,
) -> Result<bool, Refusal> {
    // SAFETY: the SSL is live, and this thread uses it; the list ends with a NUL.
    set(env, list, |list| unsafe {
        ffi::SSL_set_cipher_list(connection.ssl(), permitted(list).as_ptr())
    })
}

/// Cipher suites of TLS 1.3.
pub(crate) fn set_suites_on_connection(
    env: &mut Env<'_>,
    connection: &Connection,
    list: &JString<'_>,
) -> Result<bool, Refusal> {
    // SAFETY: as above.
    set(env, list, |list| unsafe { ffi::SSL_set_ciphersuites(connection.ssl(), list.as_ptr()) })
}
