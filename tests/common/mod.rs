//! What the tests of guards share: a process for each library, healthy connections, and what the
//! ledger must say.
#![allow(dead_code, unused_imports, reason = "not every test target uses everything")]

mod process;
mod tls;
mod told;

pub use process::{Outcome, alone, line_named, on_line};
pub use tls::{
    Identity, Idle, contexts, give_locks, identity, plug_in, plug_in_without_locks, rsa_identity,
};
pub use told::{Expected, told};

/// Makes a test for each line named, such as `on_1_0_2`, which runs the function in a process of
/// its own with that line loaded: ledger, libraries and thread states are the process's.
#[macro_export]
macro_rules! on_lines {
    ($check:path: $($test:ident)+) => {
        $(
            #[test]
            fn $test() -> $crate::common::Outcome {
                $crate::common::on_line(
                    concat!(module_path!(), "::", stringify!($test)),
                    stringify!($test),
                    $check,
                )
            }
        )+
    };
}

/// Makes tests of functions that need a process of their own and load by themselves what they need.
#[macro_export]
macro_rules! alone {
    ($($(#[$attribute:meta])* fn $test:ident() $body:block)+) => {
        $(
            $(#[$attribute])*
            #[test]
            fn $test() -> $crate::common::Outcome {
                $crate::common::alone(concat!(module_path!(), "::", stringify!($test)), || $body)
            }
        )+
    };
}
