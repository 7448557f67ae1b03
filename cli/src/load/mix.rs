//! Exact shares, spread evenly.
//!
//! "10 % new connections" of 2,000 requests means 200 of them, never 187 or 213, and never ten in a row
//! followed by ninety of the other kind: gaps between two marked requests differ by at most one. A random
//! draw gives neither, and a run that is compared with another one must do the same work.

/// Which of a fixed number of requests are marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spread {
    requests: u64,
    marked: u64,
    phase: u64,
}

impl Spread {
    /// Marks `share` (0 to 1) of `requests`, rounded to the nearest whole number.
    ///
    /// Two spreads with the same share and different `phase` (0 to 1, a part of one gap) mark different
    /// requests, so that a chunked request is not always a new connection too.
    pub fn new(requests: u64, share: f64, phase: f64) -> Self {
        let share = share.clamp(0.0, 1.0);
        // Rounding here is the only floating-point step; what follows is whole numbers.
        let marked = (requests as f64 * share).round() as u64;
        let gap = if marked == 0 { 0.0 } else { requests as f64 / marked as f64 };
        Self { requests, marked: marked.min(requests), phase: (gap * phase) as u64 }
    }

    /// How many are marked in all.
    pub fn marked(&self) -> u64 {
        self.marked
    }

    /// If request `index` is marked, the how-manieth mark it is (a permutation of `0..marked`).
    pub fn mark(&self, index: u64) -> Option<u64> {
        if self.requests == 0 {
            return None;
        }
        let turned = (index % self.requests + self.phase) % self.requests;
        let before = self.floor(turned);
        (self.floor(turned + 1) > before).then_some(before)
    }

    /// How many of the first `n` are marked.
    fn floor(&self, n: u64) -> u64 {
        (u128::from(n) * u128::from(self.marked) / u128::from(self.requests)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(spread: Spread, requests: u64) -> Vec<u64> {
        (0..requests).filter(|index| spread.mark(*index).is_some()).collect()
    }

    #[test]
    fn the_share_is_exact_whatever_the_phase() {
        for requests in [1, 7, 100, 1_000, 20_011] {
            for share in [0.0, 0.001, 0.1, 1.0 / 3.0, 0.5, 0.99, 1.0] {
                for phase in [0.0, 0.3, 0.9] {
                    let spread = Spread::new(requests, share, phase);
                    let expected = (requests as f64 * share).round() as usize;
                    assert_eq!(
                        marks(spread, requests).len(),
                        expected,
                        "{requests} {share} {phase}"
                    );
                }
            }
        }
    }

    #[test]
    fn marks_are_spread_not_lumped() {
        for share in [0.05, 0.1, 0.3, 0.5] {
            let spread = Spread::new(10_000, share, 0.5);
            let gaps: Vec<u64> =
                marks(spread, 10_000).windows(2).map(|pair| pair[1] - pair[0]).collect();
            let (least, most) = (gaps.iter().min(), gaps.iter().max());
            assert!(
                most.zip(least).is_some_and(|(most, least)| most - least <= 1),
                "{share}: {least:?}..{most:?}"
            );
        }
    }

    #[test]
    fn marks_are_numbered_once_each() {
        let spread = Spread::new(1_000, 0.037, 0.4);
        let mut numbers: Vec<u64> = (0..1_000).filter_map(|index| spread.mark(index)).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, (0..37).collect::<Vec<_>>());
    }

    #[test]
    fn a_phase_moves_the_marks() {
        let (one, other) = (Spread::new(100, 0.1, 0.0), Spread::new(100, 0.1, 0.5));
        assert!(marks(one, 100).iter().all(|index| other.mark(*index).is_none()));
    }

    #[test]
    fn nothing_to_mark() {
        assert_eq!(Spread::new(0, 0.5, 0.0).mark(0), None);
        assert_eq!(Spread::new(10, 0.0, 0.0).marked(), 0);
    }
}
