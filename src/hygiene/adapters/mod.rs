//! Guards where pools and threads of others run tasks.

mod thread;

#[cfg(feature = "rayon")]
mod rayon;
#[cfg(feature = "threadpool")]
mod threadpool;

#[cfg(feature = "rayon")]
pub use self::rayon::{RayonHygiene, RayonTasks};
#[cfg(feature = "threadpool")]
pub use self::threadpool::ThreadPoolHygiene;
pub use thread::{guarded, spawn};
