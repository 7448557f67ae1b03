//! Strings and arrays of Java.

use std::ffi::{CStr, CString};
use std::sync::Arc;

use jni::Env;
use jni::objects::{JByteArray, JClass, JObject, JObjectArray, JString};
use jni::refs::{Global, Reference};
use jni::sys::jobject;

use super::Refusal;

/// A text for OpenSSL.
pub(crate) fn text(env: &mut Env<'_>, what: &str, text: &JString<'_>) -> Result<CString, Refusal> {
    optional_text(env, what, text)?.ok_or_else(|| Refusal::exception(format!("{what} is null")))
}

/// As [`text`], of what may be null.
pub(crate) fn optional_text(
    env: &mut Env<'_>,
    what: &str,
    text: &JString<'_>,
) -> Result<Option<CString>, Refusal> {
    if text.is_null() {
        return Ok(None);
    }
    let text = text.try_to_string(env)?;
    let ended = CString::new(text)
        .map_err(|_| Refusal::exception(format!("{what} has a character with the code 0 in it")))?;
    Ok(Some(ended))
}

/// The texts of an array; those that are null are left out. Nothing where the array itself is null.
pub(crate) fn texts(
    env: &mut Env<'_>,
    array: &JObjectArray<'_, JString<'_>>,
) -> Result<Option<Vec<String>>, Refusal> {
    if array.is_null() {
        return Ok(None);
    }
    let mut texts = Vec::new();
    for place in 0..array.len(env)? {
        let text = array.get_element(env, place)?;
        if !text.is_null() {
            texts.push(text.try_to_string(env)?);
        }
        env.delete_local_ref(text);
    }
    Ok(Some(texts))
}

/// The bytes of an array that must not be null.
pub(crate) fn bytes(
    env: &mut Env<'_>,
    what: &str,
    array: &JByteArray<'_>,
) -> Result<Vec<u8>, Refusal> {
    if array.is_null() {
        return Err(Refusal::exception(format!("{what} is null")));
    }
    Ok(env.convert_byte_array(array)?)
}

pub(crate) fn string(env: &mut Env<'_>, text: &CStr) -> Result<jobject, Refusal> {
    Ok(JString::from_str(env, text.to_string_lossy())?.into_raw())
}

pub(crate) fn bytes_of(env: &mut Env<'_>, bytes: &[u8]) -> Result<jobject, Refusal> {
    Ok(env.byte_array_from_slice(bytes)?.into_raw())
}

/// A `String[]`, a new one each time: Java writes to it.
pub(crate) fn array_of_texts<'local>(
    env: &mut Env<'local>,
    texts: &[Arc<Global<JString<'static>>>],
) -> Result<jobject, Refusal> {
    let array = JObjectArray::<JString>::new(env, texts.len(), JString::null())?;
    for (place, text) in texts.iter().enumerate() {
        array.set_element(env, place, &***text)?;
    }
    Ok(array.into_raw())
}

/// A `byte[][]`.
pub(crate) fn array_of_bytes<'local>(
    env: &mut Env<'local>,
    all: &[Vec<u8>],
) -> Result<JObjectArray<'local, JObject<'local>>, Refusal> {
    let class: JClass<'_> = env.find_class(jni::jni_str!("[B"))?;
    let length =
        i32::try_from(all.len()).map_err(|_| Refusal::exception("too many certificates"))?;
    let array = env.new_object_array(length, &class, JObject::null())?;
    env.delete_local_ref(class);
    for (place, bytes) in all.iter().enumerate() {
        // Local references are few: each goes at once.
        let bytes = env.byte_array_from_slice(bytes)?;
        array.set_element(env, place, &bytes)?;
        env.delete_local_ref(bytes);
    }
    Ok(array)
}
