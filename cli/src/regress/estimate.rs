//! Medians, and how far to trust them.
//!
//! Interference on a busy machine adds time, in bursts. Means follow the bursts; medians of short rounds
//! hardly do. The interval is the one of order statistics: it assumes nothing about the shape of the noise.

use std::fmt;

use crate::report::model::LEAST_FOR_INTERVAL;

/// The median, and a 95 % interval for it, or the range of samples that are too few for one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Median {
    /// The median itself.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Of so many samples.
    pub samples: usize,
}

impl fmt::Display for Median {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(3);
        write!(f, "{:.digits$}", self.value)?;
        if self.samples >= LEAST_FOR_INTERVAL {
            write!(f, " [{:.digits$}, {:.digits$}]", self.low, self.high)?;
        }
        Ok(())
    }
}

impl Median {
    /// Of some samples; `None` if there are none.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let value = f64::midpoint(*sorted.get(n.checked_sub(1)? / 2)?, *sorted.get(n / 2)?);
        let outer = ranks_outside(n);
        Some(Self { value, low: sorted[outer], high: sorted[n - 1 - outer], samples: n })
    }

    /// What there is without a sample.
    pub fn nothing() -> Self {
        Self { value: 0.0, low: 0.0, high: 0.0, samples: 0 }
    }

    /// Half the width of the interval, as a part of the median; infinite where there is none.
    pub fn uncertainty(self) -> f64 {
        if self.value == 0.0 || self.samples < LEAST_FOR_INTERVAL {
            f64::INFINITY
        } else {
            (self.high - self.low) / 2.0 / self.value.abs()
        }
    }
}

/// How many samples can be left out at each end, so that the rest still covers the median in 95 of 100 cases.
/// With fewer than six samples nothing can be left out, and the rest covers it less often.
fn ranks_outside(n: usize) -> usize {
    // P(at most k of n fair coins fall heads), summed until it passes 2.5 %.
    let mut term = 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut sum = term;
    let mut k = 0;
    while k < n / 2 {
        term = term * (n - k) as f64 / (k + 1) as f64;
        if sum + term > 0.025 {
            break;
        }
        sum += term;
        k += 1;
    }
    if sum > 0.025 { 0 } else { k }
}

/// When enough rounds were made.
#[derive(Debug, Clone, Copy)]
pub struct Enough {
    /// Not before this many.
    pub least: u64,
    /// Not after this many.
    pub most: u64,
    /// Once the uncertainty is below this.
    pub uncertainty: f64,
}

impl Enough {
    /// Whether `samples` are enough. Looks at the spread, never at the value: a run is not prolonged until
    /// it says what somebody hopes for.
    pub fn is_reached(self, samples: &[f64]) -> bool {
        let n = samples.len() as u64;
        n >= self.most
            || n >= self.least
                && Median::of(samples)
                    .is_some_and(|median| median.uncertainty() <= self.uncertainty)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-12
    }

    #[test]
    fn medians() {
        assert_eq!(Median::of(&[]), None);
        assert!(Median::of(&[3.0]).is_some_and(|median| close(median.value, 3.0)));
        assert!(Median::of(&[4.0, 1.0]).is_some_and(|median| close(median.value, 2.5)));
        assert!(Median::of(&[9.0, 1.0, 2.0]).is_some_and(|median| close(median.value, 2.0)));
    }

    #[test]
    fn intervals_are_those_of_the_tables() {
        // Rank of the lower end for n samples, from tables of the sign test (counted from 1).
        for (n, rank) in
            [(6, 1), (8, 1), (9, 2), (12, 3), (15, 4), (20, 6), (30, 10), (50, 18), (100, 40)]
        {
            assert_eq!(ranks_outside(n) + 1, rank, "n = {n}");
        }
        let median = Median::of(&(1..=9).map(f64::from).collect::<Vec<_>>());
        assert_eq!(median, Some(Median { value: 5.0, low: 2.0, high: 8.0, samples: 9 }));
    }

    /// Five equal samples look certain; that they cover the median has a chance of 94 %.
    #[test]
    fn few_samples_have_no_interval() {
        let (five, six) = (Median::of(&[1.0; 5]), Median::of(&[1.0; 6]));
        let (Some(five), Some(six)) = (five, six) else { unreachable!("there are samples") };
        assert_eq!(five.to_string(), "1.000");
        assert_eq!(six.to_string(), "1.000 [1.000, 1.000]");
        assert!(five.uncertainty().is_infinite() && close(six.uncertainty(), 0.0));
        assert!(2.0 * 0.5_f64.powi(LEAST_FOR_INTERVAL as i32) <= 0.05);
        assert!(2.0 * 0.5_f64.powi(LEAST_FOR_INTERVAL as i32 - 1) > 0.05);
    }

    #[test]
    fn a_burst_does_not_move_the_median() {
        let mut samples = vec![1.0; 9];
        samples.extend([3.0, 5.0]);
        assert!(Median::of(&samples).is_some_and(|median| close(median.value, 1.0)));
    }

    #[test]
    fn enough_looks_at_the_spread() {
        let enough = Enough { least: 6, most: 12, uncertainty: 0.02 };
        assert!(!enough.is_reached(&[1.0; 5]));
        assert!(enough.is_reached(&[1.0; 6]));
        let noisy: Vec<f64> = (0..11).map(|n| f64::from(n % 3) + 1.0).collect();
        assert!(!enough.is_reached(&noisy));
        assert!(enough.is_reached(&[noisy, vec![1.0]].concat()));
    }
}
