//! Java's trust manager in place of OpenSSL's check.

use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use jni::errors::Error;
use jni::ids::JMethodID;
use jni::objects::{JObject, JString};
use jni::refs::Global;
use jni::signature::{Primitive, ReturnType};
use jni::sys::jvalue;
use jni::{Env, JavaVM, jni_sig, jni_str};

use super::{connection, peer};
use crate::connection::Connection;
use crate::context::Context;
use crate::ffi::{self, SSL_CIPHER, X509_STORE_CTX};
use crate::java::{Refusal, array_of_bytes};

/// A `CertificateVerifier` of Java's.
pub(crate) struct Verifier {
    object: Global<JObject<'static>>,
    verify: JMethodID,
}

impl Verifier {
    /// Refused with Java's own `NoSuchMethodError` where the object has no such method.
    pub(crate) fn new(env: &mut Env<'_>, object: &JObject<'_>) -> Result<Self, Refusal> {
        let class = env.get_object_class(object)?;
        let verify =
            env.get_method_id(&class, jni_str!("verify"), jni_sig!("(J[[BLjava/lang/String;)Z"))?;
        env.delete_local_ref(class);
        Ok(Self { object: env.new_global_ref(object)?, verify })
    }

    /// Asks Java; an exception that it throws stays pending, and means no.
    fn accepts(
        &self,
        env: &mut Env<'_>,
        connection: &Connection,
        chain: &[Vec<u8>],
    ) -> Result<bool, Refusal> {
        let chain = array_of_bytes(env, chain)?;
        let method = JString::from_str(env, authentication(connection).to_string_lossy())?;
        let arguments = [
            jvalue { j: connection.handle() },
            jvalue { l: chain.as_raw() },
            jvalue { l: method.as_raw() },
        ];
        // SAFETY: the method is the object's class's, and these are its arguments and what it returns.
        let answer = unsafe {
            env.call_method_unchecked(
                &self.object,
                self.verify,
                ReturnType::Primitive(Primitive::Boolean),
                &arguments,
            )
        }?;
        Ok(answer.z()?)
    }
}

/// Lets Java verify peers, or no more.
pub(crate) fn set_verifier(context: &Context, verifier: Option<Verifier>) {
    let callback = verifier.as_ref().map(|_| on_verify as ffi::CertVerifyCallback);
    context.set_verifier(verifier.map(Arc::new));
    let changing = context.changing();
    // SAFETY: the context is live, and nobody else uses it meanwhile; the callback lives for ever and
    // needs no argument.
    unsafe {
        ffi::SSL_CTX_set_cert_verify_callback(changing.context, callback, ptr::null_mut());
    };
}

/// Called by OpenSSL in place of its own check of a chain.
unsafe extern "C" fn on_verify(store: *mut X509_STORE_CTX, _argument: *mut c_void) -> c_int {
    // A panic is no reason to let somebody in.
    let accepted = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: OpenSSL calls with a connection that this thread uses.
        let Some(connection) = (unsafe { connection(store) }) else { return false };
        let Some(verifier) = connection.context().verifier() else { return false };
        ask(&verifier, connection, store).unwrap_or(false)
    }))
    .unwrap_or(false);
    if !accepted {
        // SAFETY: OpenSSL's, and live during the call. Without a fault the peer would not be told why.
        unsafe { ffi::X509_STORE_CTX_set_error(store, ffi::X509_V_ERR_APPLICATION_VERIFICATION) };
    }
    accepted.into()
}

fn ask(
    verifier: &Verifier,
    connection: &Connection,
    store: *mut X509_STORE_CTX,
) -> Result<bool, Refusal> {
    // SAFETY: OpenSSL's, and live during the call.
    let untrusted = unsafe { ffi::X509_STORE_CTX_get0_untrusted(store) };
    let chain = peer::encoded(untrusted).ok_or(Refusal::Silent)?;
    JavaVM::singleton()?.with_local_frame(8, |env| -> Result<bool, Refusal> {
        if env.exception_check() {
            return Err(Error::JavaException.into());
        }
        verifier.accepts(env, connection, &chain)
    })
}

/// How peers prove who they are with a connection's cipher, as Java's trust managers name it.
fn authentication(connection: &Connection) -> &'static CStr {
    // SAFETY: the SSL is live, and this thread uses it.
    let cipher: *const SSL_CIPHER = unsafe { ffi::SSL_get_current_cipher(connection.ssl()) };
    // In a handshake the cipher is that which is being agreed on, or none yet.
    let cipher = if cipher.is_null() {
        // SAFETY: as above.
        unsafe { ffi::SSL_get_pending_cipher(connection.ssl()) }
    } else {
        cipher
    };
    if cipher.is_null() {
        return c"UNKNOWN";
    }
    // SAFETY: a constant of OpenSSL's.
    let exchange = unsafe { ffi::SSL_CIPHER_get_kx_nid(cipher) };
    // SAFETY: as above.
    let proof = unsafe { ffi::SSL_CIPHER_get_auth_nid(cipher) };
    match (exchange, proof) {
        (ffi::NID_KX_RSA, _) => c"RSA",
        (ffi::NID_KX_DHE, ffi::NID_AUTH_DSS) => c"DHE_DSS",
        (ffi::NID_KX_DHE, ffi::NID_AUTH_RSA) => c"DHE_RSA",
        (ffi::NID_KX_DHE, ffi::NID_AUTH_NULL) => c"DH_anon",
        (ffi::NID_KX_ECDHE, ffi::NID_AUTH_ECDSA) => c"ECDHE_ECDSA",
        (ffi::NID_KX_ECDHE, ffi::NID_AUTH_RSA) => c"ECDHE_RSA",
        (ffi::NID_KX_ECDHE, ffi::NID_AUTH_NULL) => c"ECDH_anon",
        _ => c"UNKNOWN",
    }
}
