//! Keeps a virtual thread on its carrier: an error queue belongs to the carrier.
//!
//! The JDK has no public call for it. Its own classes use `jdk.internal.vm.Continuation.pin`, a static method
//! of the base module that counts; JNI may call what the module does not export. On a platform thread it does
//! nothing.

use std::sync::OnceLock;

use jni::Env;
use jni::ids::JStaticMethodID;
use jni::objects::JClass;
use jni::refs::Global;
use jni::signature::{Primitive, ReturnType};
use jni::{jni_sig, jni_str};

use super::env::JavaError;

struct Continuation {
    class: Global<JClass<'static>>,
    pin: JStaticMethodID,
    unpin: JStaticMethodID,
}

/// None where this JVM has no such class or methods (before Java 19).
static CONTINUATION: OnceLock<Option<Continuation>> = OnceLock::new();

impl Continuation {
    fn find(env: &mut Env<'_>) -> Result<Self, JavaError> {
        let class = env.find_class(jni_str!("jdk/internal/vm/Continuation"))?;
        let pin = env.get_static_method_id(&class, jni_str!("pin"), jni_sig!("()V"))?;
        let unpin = env.get_static_method_id(&class, jni_str!("unpin"), jni_sig!("()V"))?;
        let global = env.new_global_ref(&class)?;
        env.delete_local_ref(class);
        Ok(Self { class: global, pin, unpin })
    }

    fn call(&self, env: &mut Env<'_>, method: JStaticMethodID) -> Result<(), JavaError> {
        // SAFETY: the method was found in this class, is static, takes nothing and returns nothing.
        unsafe {
            env.call_static_method_unchecked(
                &self.class,
                method,
                ReturnType::Primitive(Primitive::Void),
                &[],
            )
        }?;
        Ok(())
    }
}

fn continuation(env: &mut Env<'_>) -> Option<&'static Continuation> {
    if let Some(found) = CONTINUATION.get() {
        return found.as_ref();
    }
    // Two threads may look at the same time; what one finds too much it gives back.
    let found = Continuation::find(env);
    if found.is_err() {
        env.exception_clear();
    }
    CONTINUATION.get_or_init(|| found.ok()).as_ref()
}

/// Returns false where this JVM cannot.
pub(super) fn pin(env: &mut Env<'_>) -> Result<bool, JavaError> {
    let Some(continuation) = continuation(env) else { return Ok(false) };
    let pinned = continuation.call(env, continuation.pin);
    if pinned.is_err() {
        // IllegalStateException: pinned too often, or this JVM refuses.
        env.exception_clear();
    }
    Ok(pinned.is_ok())
}

pub(super) fn unpin(env: &mut Env<'_>) -> Result<(), JavaError> {
    if let Some(continuation) = continuation(env)
        && continuation.call(env, continuation.unpin).is_err()
    {
        // IllegalStateException: it was not pinned.
        env.exception_clear();
    }
    Ok(())
}
