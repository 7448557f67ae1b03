//! Keeps worker threads clean of what tasks leave in OpenSSL's per-thread state.
//!
//! A *task* is one unit of work on a worker thread: an accept, a read, a request. A [`Guard`] wraps it.
//! When the task ends, the guard *sweeps* every libcrypto of the process: it looks at the thread's
//! error queue and, where the task left errors, records them under the task's label and applies the
//! task's [`Policy`]. On OpenSSL 1.0.x it then gives the thread state back ([`Release`]).
//!
//! A task that leaves nothing costs two looks at the queue and one addition: no allocation, no lock, no
//! system call (on 1.0.x the looks themselves take libcrypto's lock).
//!
//! What was left, by whom and when is in the [`ledger`].
//!
//! ```
//! use sslsweep::hygiene::{self, Guard, Policy, Task};
//!
//! # fn read_request() {}
//! // As a scope:
//! {
//!     let _guard = Guard::enter("read");
//!     read_request();
//! }
//! // Or as a wrapper, here of a library that must leave its caller's errors alone:
//! hygiene::run(Task::new("driver").policy(Policy::RollBack), read_request);
//! ```
//!
//! What a guard does *not* do: it does not run inside an OpenSSL callback of a guarded task other than
//! as a nested guard, which takes back only what was added since it was entered; it must not be used in
//! a signal handler.
#![forbid(unsafe_code)]

pub mod adapters;
mod guard;
mod label;
mod ledger;
mod sweep;
mod task;
mod thread;

pub(crate) use guard::any_dirty;
pub use guard::{Dirty, Guard, run, sweep, sweep_arrivals};
pub use label::Label;
pub(crate) use ledger::count_not_left;
pub use ledger::{LabelFigures, Ledger, Leftover, Seen, Totals, ledger, reset};
pub use task::{Policy, Release, Task};
pub(crate) use thread::begin_thread;
pub use thread::{depth, guarded_states, park, release_all};

pub use crate::libcrypto::{libraries, look_again};
