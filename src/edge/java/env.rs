//! Natives that use the JVM: what goes wrong in them becomes one pending exception.

use jni::errors::{Error, JniError};
use jni::strings::{JNIStr, JNIString};
use jni::{Env, EnvUnowned, Outcome, jni_str};

use crate::edge::EdgeError;
use crate::edge::export::{self, Returned};

/// Why a native failed.
#[derive(Debug, thiserror::Error)]
pub(in crate::edge) enum JavaError {
    #[error(transparent)]
    Edge(#[from] EdgeError),
    #[error("{0}")]
    Jvm(#[from] Error),
}

/// Runs the body of a native that uses the JVM. What goes wrong is thrown, unless an exception is pending
/// already.
pub(in crate::edge) fn enter<'local, R: Returned>(
    name: &'static str,
    unowned: &mut EnvUnowned<'local>,
    body: impl FnOnce(&mut Env<'local>) -> Result<R, JavaError>,
) -> R {
    // With the JVM's hold on the thread taken inside and given back before anything is thrown.
    let outcome = export::caught(name, || flat(unowned.with_env_no_catch(body).into_outcome()));
    outcome.unwrap_or_else(|error| {
        let _ = export::caught(name, || {
            flat(unowned.with_env_no_catch(|env| throw(env, &error)).into_outcome())
        });
        R::failed(EdgeError::Internal)
    })
}

fn flat<R>(outcome: Outcome<R, JavaError>) -> Result<R, JavaError> {
    match outcome {
        Outcome::Ok(result) => Ok(result),
        Outcome::Err(error) => Err(error),
        Outcome::Panic(payload) => std::panic::resume_unwind(payload),
    }
}

fn throw(env: &mut Env<'_>, error: &JavaError) -> Result<(), JavaError> {
    let class = match error {
        // The crate has caught it.
        JavaError::Jvm(Error::JniCall(JniError::NoMemory)) => {
            jni_str!("java/lang/OutOfMemoryError")
        }
        _ => jni_str!("java/lang/IllegalStateException"),
    };
    throw_new(env, class, &error.to_string())
}

/// Makes an exception pending, unless one is.
pub(super) fn throw_new(env: &mut Env<'_>, class: &JNIStr, text: &str) -> Result<(), JavaError> {
    if env.exception_check() {
        return Ok(());
    }
    match env.throw_new(class, JNIString::from(text)) {
        // The crate's way to say that one is pending now.
        Ok(()) | Err(Error::JavaException) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
