//! `org.apache.tomcat.jni.Buffer`.

use jni::sys::{jlong, jobject};

/// Where the memory of a direct buffer begins; 0 for another one, and for none. Asked for before each read and write.
///
/// # Safety
/// `env` is the JVM's, for the calling thread; `buffer` is a reference to an object, or null.
// SAFETY: the name is the one that Java looks for; tests/exports.rs holds all of them to Java's classes.
#[unsafe(export_name = "Java_org_apache_tomcat_jni_Buffer_address")]
pub unsafe extern "system" fn address(
    env: *mut jni::sys::JNIEnv,
    _class: jni::sys::jclass,
    buffer: jobject,
) -> jlong {
    if buffer.is_null() {
        return 0;
    }
    // SAFETY: the caller vouches for the environment, which begins with a pointer to the table of functions.
    let table = unsafe { *env };
    // SAFETY: as above.
    let functions = unsafe { &*table };
    // SAFETY: every JVM since 1.4 has this one.
    let ask = unsafe { functions.v1_4.GetDirectBufferAddress };
    // SAFETY: the caller vouches for both.
    let address = unsafe { ask(env, buffer) };
    // Java reads and writes there by the natives of SSL.
    address.expose_provenance() as jlong
}
