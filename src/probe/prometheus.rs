//! A snapshot as Prometheus reads it.
//!
//! The number of series is bounded: labels, source files and leftovers are each cut off, and what is
//! beyond is added up under a name in brackets.

use std::fmt::Debug;
use std::sync::atomic::AtomicU64;

use prometheus_client::encoding::prometheus_text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry, Unit};

use super::snapshot::{LibraryFigures, Memory, Snapshot};
use crate::hygiene::{LabelFigures, Leftover};

/// Content type of [`Snapshot::to_prometheus`].
pub const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// Leftovers (label, library, reason) that have a series of their own, those that were seen first.
pub const LEFTOVER_SERIES: usize = 500;
/// Stands for what has no series of its own.
const OTHERS: &str = "(others)";

type Labels<const N: usize> = [(&'static str, String); N];
type Counters<const N: usize> = Family<Labels<N>, Counter>;
type Gauges<const N: usize> = Family<Labels<N>, Gauge<i64, std::sync::atomic::AtomicI64>>;

impl Snapshot {
    /// The snapshot in Prometheus' text format (version 0.0.4).
    ///
    /// Counters count since the start of the process, not of the probe.
    #[must_use]
    pub fn to_prometheus(&self) -> String {
        let mut metrics = Metrics(Registry::with_prefix("sslsweep"));
        metrics.tasks(&self.ledger.labels);
        metrics.leftovers(&self.ledger.labels);
        metrics.ledger(self);
        metrics.states(&self.libraries);
        metrics.memory(&self.libraries);
        metrics.process(self);
        let mut text = String::new();
        // Writing into a String does not fail.
        let _ = encode(&mut text, &metrics.0);
        text
    }
}

struct Metrics(Registry);

impl Metrics {
    fn register<M: Metric + Clone + Default + Debug>(&mut self, name: &str, help: &str) -> M {
        let metric = M::default();
        self.0.register(name, help, metric.clone());
        metric
    }

    fn register_bytes<M: Metric + Clone + Default + Debug>(&mut self, name: &str, help: &str) -> M {
        let metric = M::default();
        self.0.register_with_unit(name, help, Unit::Bytes, metric.clone());
        metric
    }

    fn tasks(&mut self, labels: &[LabelFigures]) {
        let tasks: Counters<1> = self.register("tasks", "Guarded tasks that have ended");
        let dirty: Counters<1> =
            self.register("dirty_tasks", "Guarded tasks that left errors in an error queue");
        let arrivals: Counters<1> = self.register(
            "arrivals",
            "Errors found in an error queue when a guarded task began, left by code without a guard",
        );
        for label in labels {
            let of = [("label", label.label.to_owned())];
            tasks.get_or_create(&of).inc_by(label.tasks);
            dirty.get_or_create(&of).inc_by(label.dirty_tasks);
            arrivals.get_or_create(&of).inc_by(label.arrivals);
        }
    }

    fn leftovers(&mut self, labels: &[LabelFigures]) {
        let leftovers: Counters<3> =
            self.register("leftovers", "Errors that guarded tasks left in an error queue");
        let mut entries: Vec<(&LabelFigures, &Leftover)> = labels
            .iter()
            .flat_map(|label| label.entries.iter().map(move |entry| (label, entry)))
            .collect();
        // By their first time: so a series that was there once stays, and none goes down.
        entries.sort_by(|(one, a), (other, b)| {
            (a.first, one.label, &a.library, &a.reason).cmp(&(
                b.first,
                other.label,
                &b.library,
                &b.reason,
            ))
        });
        for (position, (label, entry)) in entries.into_iter().enumerate() {
            let (library, reason) = if position < LEFTOVER_SERIES {
                (entry.library.as_str(), entry.reason.as_str())
            } else {
                (OTHERS, OTHERS)
            };
            leftovers
                .get_or_create(&[
                    ("label", label.label.to_owned()),
                    ("library", library.to_owned()),
                    ("reason", reason.to_owned()),
                ])
                .inc_by(entry.leftovers);
        }
    }

    fn ledger(&mut self, snapshot: &Snapshot) {
        let ledger = &snapshot.ledger;
        for (name, help, value) in [
            (
                "leftovers_not_told_apart",
                "Errors counted under their label only, because the ledger was full",
                ledger.not_told_apart,
            ),
            (
                "late_tasks",
                "Dirty tasks of threads that were ending, without a record",
                ledger.late,
            ),
            ("unfinished_threads", "Threads that ended inside a guarded task", ledger.unfinished),
            (
                "unarmed_threads",
                "Threads for which the process had no key left for the release at their end",
                ledger.unarmed,
            ),
            (
                "tasks_not_left",
                "Tasks of C and Java that nobody left: they ended with others or with their thread",
                ledger.not_left,
            ),
        ] {
            let counter: Counter<u64, AtomicU64> = self.register(name, help);
            counter.inc_by(value);
        }
    }

    fn states(&mut self, libraries: &[LibraryFigures]) {
        let states: Gauges<2> = self.register(
            "thread_states",
            "Thread states alive; known_by says whether all threads are counted",
        );
        let bytes: Gauges<1> =
            self.register_bytes("thread_state", "Bytes of the thread states' error queues");
        let chain: Gauges<1> = self.register(
            "longest_chain",
            "Thread states in the fullest bucket of the table of OpenSSL 1.0.x",
        );
        let queued: Gauges<1> = self.register(
            "queued_errors",
            "Errors in the queues of all thread states of OpenSSL 1.0.x",
        );
        for library in libraries {
            let of = [("library", library.path.clone())];
            let figures = &library.thread_states;
            if let Some(alive) = figures.alive {
                let known_by = serde_json::to_value(figures.known_by);
                let known_by = known_by.ok().and_then(|text| text.as_str().map(str::to_owned));
                states
                    .get_or_create(&[
                        ("library", library.path.clone()),
                        ("known_by", known_by.unwrap_or_default()),
                    ])
                    .set(signed(alive));
            }
            if let Some(figure) = figures.bytes {
                bytes.get_or_create(&of).set(signed(figure));
            }
            if let Some(table) = &figures.table {
                queued.get_or_create(&of).set(signed(table.queued as u64));
                if let Some(longest) = table.longest_chain {
                    chain.get_or_create(&of).set(signed(longest as u64));
                }
            }
        }
    }

    fn memory(&mut self, libraries: &[LibraryFigures]) {
        let bytes: Gauges<2> = self.register_bytes(
            "libcrypto_live",
            "Memory that a libcrypto has and did not give back, by the source file that asked for it",
        );
        let blocks: Gauges<2> =
            self.register("libcrypto_live_blocks", "Blocks that this memory is in");
        let allocations: Counters<1> =
            self.register("libcrypto_allocations", "Allocations that a libcrypto has made");
        for library in libraries {
            let Memory::Counted { files, other_files, allocations: made, .. } = &library.memory
            else {
                continue;
            };
            let named = files.iter().map(|file| (file.file.as_str(), file.bytes, file.blocks));
            let others = (OTHERS, other_files.bytes, other_files.blocks);
            for (file, size, number) in named.chain([others]) {
                let of = [("library", library.path.clone()), ("file", file.to_owned())];
                bytes.get_or_create(&of).set(signed(size));
                blocks.get_or_create(&of).set(signed(number));
            }
            allocations.get_or_create(&[("library", library.path.clone())]).inc_by(*made);
        }
    }

    fn process(&mut self, snapshot: &Snapshot) {
        let info: Gauges<3> = self.register("library_info", "1 for each libcrypto that is swept");
        for library in &snapshot.libraries {
            info.get_or_create(&[
                ("library", library.path.clone()),
                ("line", library.line.to_string()),
                ("version", library.version.clone()),
            ])
            .set(1);
        }
        let blind = snapshot.blind_spots.iter().filter(|blind| blind.certain).count();
        for (name, help, value) in [
            ("blind_spots", "OpenSSLs in the process that are out of reach", blind),
            (
                "refused_libraries",
                "Libcryptos that were found and cannot be driven",
                snapshot.refused.len(),
            ),
        ] {
            let gauge: Gauge = self.register(name, help);
            gauge.set(signed(value as u64));
        }
    }
}

fn signed(figure: u64) -> i64 {
    i64::try_from(figure).unwrap_or(i64::MAX)
}
