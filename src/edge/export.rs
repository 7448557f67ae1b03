//! How a function crosses into C: symbol, ABI, panics, errors.

use std::any::Any;
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Why a call from C failed. Numbers are those of `include/sslsweep.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[repr(i32)]
pub(super) enum EdgeError {
    /// The call itself is broken. Nothing was done; please report it.
    #[error("sslsweep failed inside; please report it")]
    Internal = -1,
    /// The thread has left as many tasks as it has entered. Nothing was done; look for a path that
    /// leaves twice.
    #[error("sslsweep_exit without sslsweep_enter on this thread")]
    Unbalanced = -2,
    /// Tasks are nested too deep. This one has no guard, and yet must be left; look for a path that
    /// never leaves.
    #[error("more than {} tasks are entered on this thread", super::stack::DEEPEST)]
    TooDeep = -3,
    /// The thread is about to end and keeps no tasks any more.
    #[error("the thread is ending")]
    ThreadEnding = -4,
}

/// A value that C gets, and what it gets instead on an error.
pub(super) trait Returned {
    fn failed(error: EdgeError) -> Self;
}

impl Returned for c_int {
    fn failed(error: EdgeError) -> Self {
        error as Self
    }
}

impl Returned for usize {
    fn failed(_: EdgeError) -> Self {
        0
    }
}

impl Returned for *const c_char {
    fn failed(_: EdgeError) -> Self {
        std::ptr::null()
    }
}

/// Runs the body of an exported function: neither a panic nor an error gets past it.
pub(super) fn enter<R: Returned>(
    name: &'static str,
    body: impl FnOnce() -> Result<R, EdgeError>,
) -> R {
    let outcome = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| {
        // The host's subscriber, and what a payload does when dropped, may panic too.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            tracing::error!(function = name, panic = text(payload.as_ref()), "caught at the edge");
            drop(payload);
        }));
        Err(EdgeError::Internal)
    });
    outcome.unwrap_or_else(|error| {
        let _ = catch_unwind(AssertUnwindSafe(|| {
            tracing::debug!(function = name, %error, "refused at the edge");
        }));
        R::failed(error)
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_errors_nor_panics_get_past_the_edge() {
        assert_eq!(enter("fine", || Ok(7)), 7);
        assert_eq!(enter::<c_int>("error", || Err(EdgeError::Unbalanced)), -2);
        assert_eq!(enter::<c_int>("panic", || panic!("a text")), -1);
        assert_eq!(enter::<usize>("panic", || panic!("a number, {}", 7)), 0);
        assert!(enter::<*const c_char>("panic", || std::panic::panic_any(7)).is_null());
    }
}
