//! What the server does about the error queue: the four cures that the regression compares.

use std::sync::atomic::{AtomicU8, Ordering};

use sslsweep::probe::Library;
use sslsweep::{Guard, Task};

/// What a server does about what its tasks leave on their threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cure {
    /// Nothing: an error that somebody left is believed by the next call
    None,
    /// Clear the queue before each TLS call, as tcnative's APR connector and nginx do
    ClearEachCall,
    /// Clear the queue and give the thread state back after each socket task
    ReleaseEveryTask,
    /// A guard around each socket task: the right thing for each library
    Sweep,
}

impl Cure {
    const ALL: [Self; 4] = [Self::None, Self::ClearEachCall, Self::ReleaseEveryTask, Self::Sweep];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::ClearEachCall => "clear-each-call",
            Self::ReleaseEveryTask => "release-every-task",
            Self::Sweep => "sweep",
        }
    }

    /// The cure of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|cure| cure.name() == name)
    }
}

impl std::fmt::Display for Cure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

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
    use clap::ValueEnum;

    use super::*;

    #[test]
    fn names_are_those_of_the_command_line() {
        for cure in Cure::value_variants() {
            assert_eq!(cure.to_possible_value().unwrap().get_name(), cure.name());
            assert_eq!(Cure::named(cure.name()), Some(*cure));
            assert_eq!(serde_json::to_value(cure).unwrap(), cure.name());
            let switch = Switch::new(Cure::None);
            switch.set(*cure);
            assert_eq!(switch.get(), *cure);
        }
        assert_eq!(Cure::named("snake oil"), None);
    }
}
