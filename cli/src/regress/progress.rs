//! What a person sees while the run goes on: bars on a terminal, a line a step elsewhere.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

/// Bars of a run. All on standard error: standard output is for the report.
pub struct Progress {
    bars: Option<(MultiProgress, ProgressBar)>,
    step: ProgressBar,
    name: String,
    since: Instant,
}

impl Progress {
    /// For a run of so many steps.
    pub fn new(steps: u64) -> Self {
        let bars = std::io::stderr().is_terminal().then(|| {
            let all = MultiProgress::new();
            let whole = all.add(
                ProgressBar::new(steps)
                    .with_style(style("{elapsed_precise} {bar:30} {pos}/{len} {msg}")),
            );
            whole.enable_steady_tick(Duration::from_millis(500));
            (all, whole)
        });
        Self { bars, step: ProgressBar::hidden(), name: String::new(), since: Instant::now() }
    }

    /// A step begins; it consists of `length` things.
    pub fn step(&mut self, name: String, length: u64) {
        if let Some((all, whole)) = &self.bars {
            whole.set_message(name.clone());
            self.step = all.add(
                ProgressBar::new(length)
                    .with_style(style("         {bar:30} {human_pos}/{human_len} {msg}")),
            );
        }
        self.name = name;
        self.since = Instant::now();
    }

    /// So many of the things are done.
    pub fn set(&self, done: u64) {
        self.step.set_position(done);
    }

    /// The step is over; `result` says in a few words what came out.
    pub fn done(&mut self, result: &str) {
        self.step.finish_and_clear();
        match &self.bars {
            Some((_, whole)) => whole.inc(1),
            None => {
                eprintln!("{:5.1} s  {}: {result}", self.since.elapsed().as_secs_f64(), self.name)
            }
        }
    }

    /// The run is over.
    pub fn finish(self) {
        if let Some((_, whole)) = self.bars {
            whole.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
