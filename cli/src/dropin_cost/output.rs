//! The figures: as JSON for machines, and as a table.

use std::collections::BTreeMap;
use std::path::Path;

use comfy_table::{CellAlignment, Table, presets};
use serde::{Deserialize, Serialize};

use super::DropinCostError;
use crate::regress::estimate::Median;

/// What the clients send.
pub struct Workload {
    /// Member of `cpu_ratio`.
    pub name: &'static str,
    /// `sslsweep load COMMAND`.
    pub command: &'static str,
    /// Requests a round.
    pub requests: u64,
    /// Options of `sslsweep load`, separated by spaces.
    pub options: &'static str,
    /// What our CPU time over the C library's may be.
    pub bound: f64,
}

/// All of them. A small round takes some tens of milliseconds of CPU, so that a burst hits one of many.
pub const WORKLOADS: [Workload; 3] = [
    Workload {
        name: "put_4k_keepalive",
        command: "small",
        requests: 1_000,
        options: "--threads 16 --new-connections 0 --chunked 0",
        bound: 0.90,
    },
    Workload {
        name: "put_4k_new_connection",
        command: "small",
        requests: 64,
        options: "--threads 16 --new-connections 1 --chunked 0",
        bound: 0.95,
    },
    Workload {
        name: "put_100m",
        command: "large",
        requests: 1,
        options: "--threads 1 --body 100000000 --keep-alive",
        bound: 0.95,
    },
];

/// Nanoseconds of a native on either library.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Native {
    /// Ours.
    pub dropin: f64,
    /// The C library's.
    pub c: f64,
}

/// A ratio, and how well it is known.
#[derive(Debug, Serialize)]
struct Spread {
    /// The median.
    ratio: f64,
    /// Lower end of a 95 % interval for it.
    low: f64,
    /// Upper end.
    high: f64,
    /// Quads.
    quads: usize,
    /// The bound of the ratio; none for the control.
    #[serde(skip_serializing_if = "Option::is_none")]
    bound: Option<f64>,
    /// Microseconds of CPU a PUT on the library in question, the median.
    cost_us: f64,
}

/// `target/bench/dropin.json`.
#[derive(Debug, Serialize)]
struct Report<'a> {
    tomcat: &'a str,
    dropin: &'a str,
    c: &'a str,
    openssl: &'a str,
    cpu_ratio: BTreeMap<&'static str, f64>,
    cpu: BTreeMap<&'static str, Spread>,
    control: BTreeMap<&'static str, Spread>,
    native_ns: BTreeMap<&'a str, &'a Native>,
}

/// All that was measured.
#[derive(Debug)]
pub struct Figures {
    tomcat: String,
    dropin: String,
    c: String,
    openssl: String,
    /// By workload: what a PUT costs with the drop-in, the C library and the control, a quad each.
    costs: [Vec<[f64; 3]>; WORKLOADS.len()],
    natives: BTreeMap<String, Native>,
}

/// Reads what the natives cost.
///
/// # Errors
/// The file is not there, or is not what `make bench-dropin` writes.
pub fn read_natives(path: &Path) -> Result<BTreeMap<String, Native>, DropinCostError> {
    let error = |why: String| DropinCostError::Natives { path: path.to_owned(), why };
    let text = std::fs::read_to_string(path).map_err(|reason| error(reason.to_string()))?;
    serde_json::from_str(&text).map_err(|reason| error(reason.to_string()))
}

impl Figures {
    /// None yet.
    pub fn new(natives: Option<BTreeMap<String, Native>>) -> Self {
        Self {
            tomcat: String::new(),
            dropin: String::new(),
            c: String::new(),
            openssl: String::new(),
            costs: Default::default(),
            natives: natives.unwrap_or_default(),
        }
    }

    /// What the servers said they were.
    pub fn ran_on(&mut self, tomcat: String, dropin: String, c: String, openssl: String) {
        (self.tomcat, self.dropin, self.c, self.openssl) = (tomcat, dropin, c, openssl);
    }

    /// What a quad cost.
    pub fn add(&mut self, workload: usize, costs: [f64; 3]) {
        self.costs[workload].push(costs);
    }

    /// The library of that number over the C library.
    fn spread(&self, workload: usize, library: usize) -> Spread {
        let costs = &self.costs[workload];
        let ratios: Vec<f64> = costs.iter().map(|costs| costs[library] / costs[1]).collect();
        let median = Median::of(&ratios).unwrap_or(Median::nothing());
        let cost: Vec<f64> = costs.iter().map(|costs| costs[library]).collect();
        Spread {
            ratio: median.value,
            low: median.low,
            high: median.high,
            quads: median.samples,
            bound: (library == 0).then_some(WORKLOADS[workload].bound),
            cost_us: Median::of(&cost).unwrap_or(Median::nothing()).value,
        }
    }

    fn spreads(&self, library: usize) -> BTreeMap<&'static str, Spread> {
        let each = WORKLOADS.iter().enumerate();
        each.map(|(number, workload)| (workload.name, self.spread(number, library))).collect()
    }

    /// Workloads whose ratio is beyond its bound.
    pub fn beyond(&self) -> Vec<String> {
        let each = WORKLOADS.iter().enumerate();
        each.filter_map(|(number, workload)| {
            let ratio = self.spread(number, 0).ratio;
            let beyond = ratio > workload.bound;
            beyond.then(|| format!("{} {ratio:.3} > {:.2}", workload.name, workload.bound))
        })
        .collect()
    }

    fn json(&self) -> serde_json::Result<String> {
        let cpu = self.spreads(0);
        let report = Report {
            tomcat: &self.tomcat,
            dropin: &self.dropin,
            c: &self.c,
            openssl: &self.openssl,
            cpu_ratio: cpu.iter().map(|(name, spread)| (*name, spread.ratio)).collect(),
            cpu,
            control: self.spreads(2),
            native_ns: self.natives.iter().map(|(name, native)| (name.as_str(), native)).collect(),
        };
        serde_json::to_string_pretty(&report).map(|text| text + "\n")
    }

    /// Writes the JSON.
    ///
    /// # Errors
    /// The file, or its folder, cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), DropinCostError> {
        let error = |source| DropinCostError::Write { path: path.to_owned(), source };
        let text = self.json().map_err(|reason| error(reason.into()))?;
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(error)?;
        }
        std::fs::write(path, text).map_err(error)
    }

    /// For the terminal.
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.set_header([
            "server CPU, drop-in / C",
            "ratio",
            "95 %",
            "bound",
            "control",
            "drop-in, us",
            "C, us",
        ]);
        for (number, workload) in WORKLOADS.iter().enumerate() {
            let (ours, control) = (self.spread(number, 0), self.spread(number, 2));
            table.add_row([
                workload.name.to_owned(),
                format!("{:.3}", ours.ratio),
                format!("{:.3} .. {:.3}", ours.low, ours.high),
                format!("{:.2}", workload.bound),
                format!("{:.3}", control.ratio),
                format!("{:.1}", ours.cost_us),
                format!("{:.1}", self.spread(number, 1).cost_us),
            ]);
        }
        right_aligned(&mut table);
        let mut text = format!(
            "{}; drop-in {}, C library {}; {}\n\n{table}\n",
            self.tomcat, self.dropin, self.c, self.openssl
        );
        if !self.natives.is_empty() {
            let mut table = Table::new();
            table.load_preset(presets::NOTHING);
            table.set_header(["native", "drop-in, ns", "C, ns", "ratio"]);
            for (name, Native { dropin, c }) in &self.natives {
                table.add_row([
                    name.clone(),
                    format!("{dropin:.1}"),
                    format!("{c:.1}"),
                    format!("{:.2}", dropin / c),
                ]);
            }
            right_aligned(&mut table);
            text.push_str(&format!("\n{table}\n"));
        }
        text
    }
}

/// Figures stand under each other.
fn right_aligned(table: &mut Table) {
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(costs: [f64; 3]) -> Figures {
        let mut figures = Figures::new(None);
        for workload in 0..WORKLOADS.len() {
            for _ in 0..7 {
                figures.add(workload, costs);
            }
        }
        figures
    }

    #[test]
    fn a_ratio_beyond_its_bound_is_told() {
        assert!(figures([0.90, 1.0, 1.0]).beyond().is_empty());
        assert_eq!(figures([0.92, 1.0, 1.0]).beyond(), ["put_4k_keepalive 0.920 > 0.90"]);
        assert_eq!(figures([1.2, 1.0, 1.0]).beyond().len(), WORKLOADS.len());
    }

    #[test]
    fn the_file_says_what_the_table_says() -> Result<(), Box<dyn std::error::Error>> {
        let figures = figures([0.8, 1.0, 1.01]);
        let report: serde_json::Value = serde_json::from_str(&figures.json()?)?;
        for workload in &WORKLOADS {
            assert_eq!(report["cpu_ratio"][workload.name], 0.8);
            assert_eq!(report["control"][workload.name]["ratio"], 1.01);
        }
        assert!(figures.table().contains("0.800"));
        Ok(())
    }
}
