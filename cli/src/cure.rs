//! The cures that a server can have, and that the regression compares.

use std::fmt;

/// What a server does about what its tasks leave on their threads.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize, serde::Deserialize,
)]
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
    /// All of them, in the order of reports.
    pub const ALL: [Self; 4] =
        [Self::None, Self::ClearEachCall, Self::ReleaseEveryTask, Self::Sweep];

    /// Its name on the command line and in JSON.
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

impl fmt::Display for Cure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
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
        }
        assert_eq!(Cure::named("snake oil"), None);
    }
}
