//! Thread models: which thread runs a connection's next task.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Most worker threads that can be asked for.
const MOST: usize = 10_000;
/// How long a thread above the least number of an elastic pool waits for work before it ends.
pub const IDLE: Duration = Duration::from_secs(1);

/// Who runs the tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// Workers that share a queue: at least so many, at most so many, more only while all are busy.
    Pool { least: usize, most: usize },
    /// A thread for each connection.
    PerConnection,
}

impl fmt::Display for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pool { least, most } if least == most => write!(f, "pool:{least}"),
            Self::Pool { least, most } => write!(f, "elastic:{least}..{most}"),
            Self::PerConnection => f.write_str("per-connection"),
        }
    }
}

impl Threads {
    /// Most worker threads, where the model has a bound.
    pub fn most(self) -> usize {
        match self {
            Self::Pool { most, .. } => most,
            Self::PerConnection => 0,
        }
    }
}

/// More threads than the process can have.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{wanted} threads are asked for, and this system has room for {room} in a process; ask for fewer, \
     or raise it: sysctl vm.max_map_count={}", wanted.saturating_mul(MAPS_PER_THREAD) + MAPS_OF_PROCESS
)]
pub struct NoRoom {
    wanted: usize,
    room: usize,
}

/// Mappings of a thread: its stack and its signal stack, with a guard page each.
const MAPS_PER_THREAD: usize = 4;
/// Mappings of everything else.
const MAPS_OF_PROCESS: usize = 2000;

/// How many threads the process has room for. std ends the process when a thread that was started
/// finds no room for its signal stack, so this has to be known before.
pub fn room() -> usize {
    let maps = std::fs::read_to_string("/proc/sys/vm/max_map_count");
    let maps = maps.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(65_530_usize);
    maps.saturating_sub(MAPS_OF_PROCESS) / MAPS_PER_THREAD
}

/// Checks that so many threads have room.
///
/// # Errors
/// They have not.
pub fn check_room(wanted: usize) -> Result<(), NoRoom> {
    let room = room();
    if wanted <= room { Ok(()) } else { Err(NoRoom { wanted, room }) }
}

/// A thread model that is not known.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ThreadsError {
    #[error("give pool:N, elastic:MIN..MAX or per-connection")]
    Unknown,
    #[error("the number of threads must be 1 to {MOST}")]
    Number,
    #[error("MIN must not be above MAX")]
    Order,
}

impl FromStr for Threads {
    type Err = ThreadsError;

    fn from_str(text: &str) -> Result<Self, ThreadsError> {
        if text == "per-connection" {
            return Ok(Self::PerConnection);
        }
        if let Some(number) = text.strip_prefix("pool:") {
            let number = count(number)?;
            return Ok(Self::Pool { least: number, most: number });
        }
        let range = text.strip_prefix("elastic:").ok_or(ThreadsError::Unknown)?;
        let (least, most) = range.split_once("..").ok_or(ThreadsError::Unknown)?;
        let (least, most) = (count(least)?, count(most)?);
        if least > most {
            return Err(ThreadsError::Order);
        }
        Ok(Self::Pool { least, most })
    }
}

fn count(text: &str) -> Result<usize, ThreadsError> {
    let number = text.parse().map_err(|_| ThreadsError::Number)?;
    if (1..=MOST).contains(&number) { Ok(number) } else { Err(ThreadsError::Number) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_beyond_the_systems_room_are_refused() {
        assert_eq!(check_room(room()), Ok(()));
        let refused = check_room(room() + 1).unwrap_err();
        assert!(refused.to_string().contains("vm.max_map_count="), "{refused}");
    }

    #[test]
    fn models_are_read_and_written_alike() {
        for text in ["pool:8", "elastic:2..200", "per-connection"] {
            assert_eq!(text.parse::<Threads>().unwrap().to_string(), text);
        }
        for (text, error) in [
            ("", ThreadsError::Unknown),
            ("pool", ThreadsError::Unknown),
            ("pool:", ThreadsError::Number),
            ("pool:0", ThreadsError::Number),
            ("pool:10001", ThreadsError::Number),
            ("elastic:5", ThreadsError::Unknown),
            ("elastic:9..8", ThreadsError::Order),
            ("elastic:0..8", ThreadsError::Number),
        ] {
            assert_eq!(text.parse::<Threads>(), Err(error), "{text}");
        }
    }
}
