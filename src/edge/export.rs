//! How a function crosses into C or Java: symbol, ABI, panics, errors.

use std::any::Any;
use std::ffi::{c_char, c_int};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use jni::sys::jobject;

/// Why a call failed. Numbers are those of `include/sslsweep.h` and of `org.sslsweep.Natives`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[repr(i32)]
pub(super) enum EdgeError {
    /// The call itself is broken. Nothing was done; please report it.
    #[error("sslsweep failed inside; please report it")]
    Internal = -1,
    /// The thread has left as many tasks as it has entered, or not entered this one, or is in a task where
    /// it must be in none. Nothing was done; look for a path that leaves twice or never.
    #[error("enter and exit do not match on this thread")]
    Unbalanced = -2,
    /// Tasks are nested too deep. This one has no guard, and yet must be left; look for a path that
    /// never leaves.
    #[error("more than {} tasks are entered on this thread", super::stack::DEEPEST)]
    TooDeep = -3,
    /// The thread is about to end and keeps no tasks any more.
    #[error("the thread is ending")]
    ThreadEnding = -4,
}

/// A value that the caller gets, and what it gets instead on an error.
pub(super) trait Returned {
    fn failed(error: EdgeError) -> Self;
}

impl Returned for c_int {
    fn failed(error: EdgeError) -> Self {
        error as Self
    }
}

impl Returned for i64 {
    fn failed(error: EdgeError) -> Self {
        c_int::failed(error).into()
    }
}

impl Returned for bool {
    fn failed(_: EdgeError) -> Self {
        false
    }
}

impl Returned for () {
    fn failed(_: EdgeError) -> Self {}
}

impl Returned for usize {
    fn failed(_: EdgeError) -> Self {
        0
    }
}

/// A Java object, or null.
impl Returned for jobject {
    fn failed(_: EdgeError) -> Self {
        std::ptr::null_mut()
    }
}

impl Returned for *const c_char {
    fn failed(_: EdgeError) -> Self {
        std::ptr::null()
    }
}

/// Runs the body of an exported function: neither a panic nor an error gets past it.
#[inline]
pub(super) fn enter<R: Returned>(
    name: &'static str,
    body: impl FnOnce() -> Result<R, EdgeError>,
) -> R {
    caught(name, body).unwrap_or_else(R::failed)
}

/// Runs `body`, and makes an error of a panic.
#[inline]
pub(super) fn caught<R, E: Display + From<EdgeError>>(
    name: &'static str,
    body: impl FnOnce() -> Result<R, E>,
) -> Result<R, E> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(result)) => Ok(result),
        Ok(Err(error)) => {
            refused(name, &error);
            Err(error)
        }
        Err(payload) => {
            panicked(name, payload);
            Err(EdgeError::Internal.into())
        }
    }
}

// The host's subscriber, and what a payload does when dropped, may panic too.

#[cold]
fn panicked(name: &'static str, payload: Box<dyn Any + Send>) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        tracing::error!(function = name, panic = text(payload.as_ref()), "caught at the edge");
        drop(payload);
    }));
}

#[cold]
fn refused(name: &'static str, error: &dyn Display) {
    let _ = catch_unwind(AssertUnwindSafe(|| {
        tracing::debug!(function = name, %error, "refused at the edge");
    }));
}

/// What a panic said: `panic!("n")` carries a `&str`, `panic!("n = {n}")` a `String`.
fn text(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a text")
}

/// Exports functions to C. The body is of type `Result<_, EdgeError>`; what it does with a pointer it
/// does in an `unsafe` block, on the conditions that the function's `# Safety` states. A function
/// without arguments is safe to call.
macro_rules! c_export {
    ($($(#[$attribute:meta])* fn $name:ident($($argument:ident: $type:ty),*) -> $returned:ty $body:block)+) => {
        $(c_export!(@one $(#[$attribute])* fn $name($($argument: $type),*) -> $returned $body);)+
    };
    (@one $(#[$attribute:meta])* fn $name:ident() -> $returned:ty $body:block) => {
        $(#[$attribute])*
        // SAFETY: the names are ours (`sslsweep_`), and tests/exports.rs holds them to a list.
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> $returned {
            $crate::edge::export::enter(stringify!($name), || $body)
        }
    };
    (@one $(#[$attribute:meta])* fn $name:ident($($argument:ident: $type:ty),+) -> $returned:ty $body:block) => {
        $(#[$attribute])*
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($argument: $type),+) -> $returned {
            $crate::edge::export::enter(stringify!($name), || $body)
        }
    };
}

/// Exports natives to Java, under the names that Java looks for. The body is of type `Result<_, EdgeError>`
/// and does not touch the JVM; or, where the first argument is `env`, of type `Result<_, JavaError>`, and may
/// throw. Java's class, which it passes to each static native, is of use to none.
macro_rules! jni_export {
    ($($(#[$attribute:meta])* fn $name:ident($($arguments:tt)*) -> $returned:ty $body:block)+) => {
        $(jni_export!(@one $(#[$attribute])* fn $name($($arguments)*) -> $returned $body);)+
    };
    (@one $(#[$attribute:meta])*
        fn $name:ident($env:ident $(, $argument:ident: $type:ty)*) -> $returned:ty $body:block) => {
        $(#[$attribute])*
        // SAFETY: the names are ours (`Java_org_sslsweep_`), and tests/exports.rs holds them to a list.
        #[unsafe(no_mangle)]
        pub extern "system" fn $name<'local>(
            mut unowned: ::jni::EnvUnowned<'local>,
            _class: ::jni::objects::JClass<'local>
            $(, $argument: $type)*
        ) -> $returned {
            $crate::edge::java::enter(stringify!($name), &mut unowned, |$env| $body)
        }
    };
    (@one $(#[$attribute:meta])*
        fn $name:ident($($argument:ident: $type:ty),*) -> $returned:ty $body:block) => {
        $(#[$attribute])*
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        pub extern "system" fn $name(
            _env: *mut ::std::ffi::c_void,
            _class: *mut ::std::ffi::c_void
            $(, $argument: $type)*
        ) -> $returned {
            $crate::edge::export::enter(stringify!($name), || $body)
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_errors_nor_panics_get_past_the_edge() {
        assert_eq!(enter("fine", || Ok(7)), 7);
        assert_eq!(enter::<c_int>("error", || Err(EdgeError::Unbalanced)), -2);
        assert_eq!(enter::<c_int>("panic", || panic!("a text")), -1);
        assert_eq!(enter::<usize>("panic", || panic!("a number, {}", 7)), 0);
        assert_eq!(enter::<i64>("error", || Err(EdgeError::TooDeep)), -3);
        assert!(!enter::<bool>("panic", || panic!("a text")));
        assert!(enter::<*const c_char>("panic", || std::panic::panic_any(7)).is_null());
    }
}
