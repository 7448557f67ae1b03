//! Thread models: which thread runs a connection's next task.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// Most worker threads that can be asked for.
const MOST: usize = 20_000;
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
    fn models_are_read_and_written_alike() {
        for text in ["pool:8", "elastic:2..200", "per-connection"] {
            assert_eq!(text.parse::<Threads>().unwrap().to_string(), text);
        }
        for (text, error) in [
            ("", ThreadsError::Unknown),
            ("pool", ThreadsError::Unknown),
            ("pool:", ThreadsError::Number),
            ("pool:0", ThreadsError::Number),
            ("pool:20001", ThreadsError::Number),
            ("elastic:5", ThreadsError::Unknown),
            ("elastic:9..8", ThreadsError::Order),
            ("elastic:0..8", ThreadsError::Number),
        ] {
            assert_eq!(text.parse::<Threads>(), Err(error), "{text}");
        }
    }
}
