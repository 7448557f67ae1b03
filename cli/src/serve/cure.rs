//! Carries out the cure that the server has.

use std::sync::atomic::{AtomicU8, Ordering};

use sslsweep::probe::Library;
use sslsweep::{Guard, Task};

pub use crate::cure::Cure;

/// The cure in force. Tasks that begin after a change have the new one.
#[derive(Debug)]
pub struct Switch(AtomicU8);

impl Switch {
    pub fn new(cure: Cure) -> Self {
        Self(AtomicU8::new(cure as u8))
    }

    pub fn set(&self, cure: Cure) {
        self.0.store(cure as u8, Ordering::Relaxed);
    }

    pub fn get(&self) -> Cure {
        Cure::ALL[usize::from(self.0.load(Ordering::Relaxed)) % Cure::ALL.len()]
    }
}

/// A socket task on the calling thread, from its beginning to its end, with the cure it began with.
#[must_use]
pub struct Running {
    cure: Cure,
    library: &'static Library,
    /// Sweeps when it is dropped.
    _guard: Option<Guard>,
}

impl Running {
    /// Begins a task that does `label` for a connection.
    #[inline]
    pub fn begin(
        cure: Cure,
        library: &'static Library,
        label: &'static str,
        connection: u64,
    ) -> Self {
        let guard =
            (cure == Cure::Sweep).then(|| Guard::enter(Task::new(label).connection(connection)));
        Self { cure, library, _guard: guard }
    }

    /// To be called before each call into libssl.
    #[inline]
    pub fn before_call(&self) {
        if self.cure == Cure::ClearEachCall {
            self.library.clear();
        }
    }
}

impl Drop for Running {
    #[inline]
    fn drop(&mut self) {
        if self.cure == Cure::ReleaseEveryTask {
            self.library.clear();
            self.library.release();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_keeps_what_it_was_set_to() {
        for cure in Cure::ALL {
            let switch = Switch::new(Cure::None);
            switch.set(cure);
            assert_eq!(switch.get(), cure);
        }
    }
}
