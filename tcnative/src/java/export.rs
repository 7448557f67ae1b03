//! The frame around each native: neither a panic nor an error of Rust gets past it, and the error queue is
//! empty behind it.

use std::any::Any;
use std::ffi::CStr;
use std::panic::{AssertUnwindSafe, catch_unwind};

use jni::errors::{Error, JniError};
use jni::strings::JNIString;
use jni::sys::{JNIEnv, jint, jlong, jobject};
use jni::{Env, EnvUnowned, Outcome, jni_str};

use crate::queue::Entered;

/// Why a native did not do what it was called for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// Java gets a `java.lang.Exception` with this text.
    #[error("{0}")]
    Exception(String),
    /// Java gets the value that stands for a failure, and no exception.
    #[error("refused")]
    Silent,
    /// The JVM could not do something; mostly an exception is pending already.
    #[error("{0}")]
    Jvm(#[from] Error),
}

impl Refusal {
    pub(crate) fn exception(text: impl Into<String>) -> Self {
        Self::Exception(text.into())
    }
}

/// A value that Java gets, and what it gets instead where a native fails.
pub(crate) trait Failed {
    const FAILED: Self;
}

impl Failed for jint {
    const FAILED: Self = 0;
}

impl Failed for jlong {
    const FAILED: Self = 0;
}

impl Failed for bool {
    const FAILED: Self = false;
}

impl Failed for () {
    const FAILED: Self = ();
}

impl Failed for jobject {
    const FAILED: Self = std::ptr::null_mut();
}

/// Runs a native that leaves the JVM alone unless it fails.
#[inline]
pub(crate) fn native<R>(
    enter: impl FnOnce() -> Entered,
    name: &'static CStr,
    env: *mut JNIEnv,
    failed: R,
    body: impl FnOnce(&Entered) -> Result<R, Refusal>,
) -> R {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let entered = enter();
        body(&entered)
    }));
    match caught {
        Ok(Ok(value)) => value,
        Ok(Err(Refusal::Silent)) => failed,
        Ok(Err(refusal)) => {
            // SAFETY: the JVM gave it to this native, on this thread.
            let mut env = unsafe { EnvUnowned::from_raw(env) };
            throw(name, &mut env, &refusal);
            failed
        }
        Err(payload) => {
            // SAFETY: as above.
            let mut env = unsafe { EnvUnowned::from_raw(env) };
            throw(name, &mut env, &panicked(name, payload));
            failed
        }
    }
}

/// Runs a native that uses the JVM.
pub(crate) fn native_with_env<'local, R>(
    name: &'static CStr,
    env: &mut EnvUnowned<'local>,
    failed: R,
    body: impl FnOnce(&Entered, &mut Env<'local>) -> Result<R, Refusal>,
) -> R {
    let caught = catch_unwind(AssertUnwindSafe(|| {
        let entered = Entered::new(name);
        match env.with_env_no_catch(|env| body(&entered, env)).into_outcome() {
            Outcome::Ok(value) => Ok(value),
            Outcome::Err(refusal) => Err(refusal),
            Outcome::Panic(payload) => std::panic::resume_unwind(payload),
        }
    }));
    let refusal = match caught {
        Ok(Ok(value)) => return value,
        Ok(Err(Refusal::Silent)) => return failed,
        Ok(Err(refusal)) => refusal,
        Err(payload) => panicked(name, payload),
    };
    throw(name, env, &refusal);
    failed
}

#[cold]
fn panicked(name: &CStr, payload: Box<dyn Any + Send>) -> Refusal {
    let said = payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a text");
    let refusal = Refusal::Exception(format!(
        "{} failed inside; please report it: {said}",
        name.to_string_lossy()
    ));
    // What a payload does when it is dropped may panic too.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(payload)));
    refusal
}

/// Makes an exception pending, unless one is.
#[cold]
#[inline(never)]
fn throw(name: &CStr, env: &mut EnvUnowned<'_>, refusal: &Refusal) {
    // What goes wrong here leaves an exception of the JVM's own, which does as well.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        tracing::debug!(native = %name.to_string_lossy(), %refusal, "refused");
        let _ = env
            .with_env_no_catch(|env| -> Result<(), Error> {
                if env.exception_check() {
                    return Ok(());
                }
                let class = match refusal {
                    // The crate has caught it.
                    Refusal::Jvm(Error::JniCall(JniError::NoMemory)) => {
                        jni_str!("java/lang/OutOfMemoryError")
                    }
                    _ => jni_str!("java/lang/Exception"),
                };
                env.throw_new(class, JNIString::from(refusal.to_string()))
            })
            .into_outcome();
    }));
}

/// Defines the natives of a class of `org.apache.tomcat.jni`, each a static method. After `hot`, the body is a value
/// and can neither fail nor touch OpenSSL. Otherwise it is a `Result<_, Refusal>`; after `|native|` it has the
/// native's [`Entered`], which after `lazy` looks at the queue only when it is told; with `env` as its first argument it may use the JVM. `else` gives the value for Java
/// where the body fails.
macro_rules! natives {
    (class $class:ident; $($rest:tt)*) => { natives!(@next $class $($rest)*); };
    (@next $class:ident) => {};
    (@next $class:ident $(#[$attribute:meta])*
        hot fn $name:ident($($argument:ident: $type:ty),*) -> $returned:ty $body:block $($rest:tt)*
    ) => {
        $(#[$attribute])*
        // SAFETY: the name is the one that Java looks for; tests/exports.rs holds all of them to Java's classes.
        #[unsafe(export_name = concat!(
            "Java_org_apache_tomcat_jni_", stringify!($class), "_", stringify!($name)
        ))]
        pub extern "system" fn $name(
            _env: *mut ::jni::sys::JNIEnv,
            _class: ::jni::sys::jclass
            $(, $argument: $type)*
        ) -> $returned $body
        natives!(@next $class $($rest)*);
    };
    (@next $class:ident $(#[$attribute:meta])*
        fn $name:ident($env:ident $(, $argument:ident: $type:ty)*) -> $returned:ty
        $(, else $failed:literal)? |$native:ident| $body:block $($rest:tt)*
    ) => {
        $(#[$attribute])*
        // SAFETY: as above.
        #[unsafe(export_name = concat!(
            "Java_org_apache_tomcat_jni_", stringify!($class), "_", stringify!($name)
        ))]
        pub extern "system" fn $name<'local>(
            mut unowned: ::jni::EnvUnowned<'local>,
            _class: ::jni::sys::jclass
            $(, $argument: $type)*
        ) -> $returned {
            $crate::java::native_with_env(
                natives!(@label $class $name),
                &mut unowned,
                natives!(@failed $returned $(, $failed)?),
                |$native: &$crate::queue::Entered, $env: &mut ::jni::Env<'local>| {
                    let _ = $native;
                    $body
                },
            )
        }
        natives!(@next $class $($rest)*);
    };
    (@next $class:ident $(#[$attribute:meta])*
        lazy fn $name:ident($($argument:ident: $type:ty),*) -> $returned:ty
        |$native:ident| $body:block $($rest:tt)*
    ) => {
        natives!(@plain lazily $class [$(#[$attribute])*] $name($($argument: $type),*) -> $returned
            [<$returned as $crate::java::Failed>::FAILED] |$native| $body);
        natives!(@next $class $($rest)*);
    };
    (@next $class:ident $(#[$attribute:meta])*
        fn $name:ident($($argument:ident: $type:ty),*) -> $returned:ty
        $(, else $failed:literal)? |$native:ident| $body:block $($rest:tt)*
    ) => {
        natives!(@plain new $class [$(#[$attribute])*] $name($($argument: $type),*) -> $returned
            [natives!(@failed $returned $(, $failed)?)] |$native| $body);
        natives!(@next $class $($rest)*);
    };
    (@plain $entered:ident $class:ident [$(#[$attribute:meta])*]
        $name:ident($($argument:ident: $type:ty),*) -> $returned:ty
        [$failed:expr] |$native:ident| $body:block
    ) => {
        $(#[$attribute])*
        // SAFETY: as above.
        #[unsafe(export_name = concat!(
            "Java_org_apache_tomcat_jni_", stringify!($class), "_", stringify!($name)
        ))]
        pub extern "system" fn $name(
            env: *mut ::jni::sys::JNIEnv,
            _class: ::jni::sys::jclass
            $(, $argument: $type)*
        ) -> $returned {
            $crate::java::native(
                || $crate::queue::Entered::$entered(natives!(@label $class $name)),
                natives!(@label $class $name),
                env,
                $failed,
                |$native: &$crate::queue::Entered| {
                    let _ = $native;
                    $body
                },
            )
        }
    };
    (@failed $returned:ty) => { <$returned as $crate::java::Failed>::FAILED };
    (@failed $returned:ty, $failed:literal) => { $failed };
    (@label $class:ident $name:ident) => {{
        const NAME: &::std::ffi::CStr = match ::std::ffi::CStr::from_bytes_with_nul(
            concat!("tcnative ", stringify!($class), ".", stringify!($name), "\0").as_bytes(),
        ) {
            Ok(name) => name,
            Err(_) => c"tcnative",
        };
        NAME
    }};
}
