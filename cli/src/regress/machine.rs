//! How much of the machine other processes had, so that their load is not taken for ours.
//!
//! A rate of large PUTs is a rate of two processes that want all cores. When something else wants them too
//! (a compiler, another guest of the host), it falls in proportion, and a ratio of two such rates would say
//! who compiled when. The kernel counts what all processes got (`/proc/stat`), our processes count their own,
//! and the rest was taken from us. Where `/proc/stat` cannot be read nothing is taken off.

use std::time::Instant;

/// A reading of the kernel's counters.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    at: Instant,
    /// Busy time of all cores, stolen time included, in ticks; `None` if unknown.
    busy: Option<u64>,
    cores: u32,
}

/// Ticks a second of `/proc/stat`: part of the kernel's interface, whatever its timer does.
const TICKS: f64 = 100.0;

impl Reading {
    /// Now.
    pub fn now() -> Self {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let cores = text.lines().filter(|line| is_core(line)).count() as u32;
        Self { at: Instant::now(), busy: text.lines().next().and_then(busy), cores: cores.max(1) }
    }

    /// The share of the machine that others had since this reading, where we used `our_cpu_seconds`.
    pub fn share_of_others(self, our_cpu_seconds: f64) -> f64 {
        let now = Self::now();
        let seconds = now.at.duration_since(self.at).as_secs_f64() * f64::from(self.cores);
        match (self.busy, now.busy) {
            (Some(before), Some(after)) if seconds > 0.0 => {
                let all = after.saturating_sub(before) as f64 / TICKS;
                // Not more than this: a rate divided by nearly nothing says nothing.
                ((all - our_cpu_seconds) / seconds).clamp(0.0, 0.95)
            }
            _ => 0.0,
        }
    }
}

fn is_core(line: &str) -> bool {
    line.strip_prefix("cpu")
        .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
}

/// Ticks that were not idle, from the first line: user, nice, system, (idle, iowait,) irq, softirq, steal.
fn busy(line: &str) -> Option<u64> {
    let mut fields = line.strip_prefix("cpu ")?.split_whitespace().map(str::parse::<u64>);
    let mut next = || fields.next()?.ok();
    let (user, nice, system, _idle, _iowait) = (next()?, next()?, next()?, next()?, next()?);
    Some(user + nice + system + next()? + next()? + next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_is_not_busy() {
        assert_eq!(
            busy("cpu  276227 16283 72231 200340 6250 1 1748 374 0 0"),
            Some(276_227 + 16_283 + 72_231 + 1 + 1_748 + 374)
        );
        assert_eq!(busy("intr 5"), None);
        assert!(is_core("cpu11 1 2") && !is_core("cpu  1 2"));
    }

    #[test]
    fn what_we_used_was_not_taken_by_others() {
        let before = Reading::now();
        std::thread::sleep(std::time::Duration::from_millis(30));
        assert!((0.0..=0.95).contains(&before.share_of_others(0.0)));
        assert!(before.share_of_others(1e9) == 0.0);
    }
}
