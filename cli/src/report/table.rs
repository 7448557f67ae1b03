//! The report on a terminal: 120 columns at most.

use std::fmt::Write;

use comfy_table::{CellAlignment, Table, TableComponent, presets};

use super::model::{Host, LEAST_FOR_INTERVAL, Lock, Paired, Report, Run, WarmUp};

/// Widest line.
const WIDTH: usize = 120;

/// All tables, with the words that explain them.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write!(text, "\n{}\n\n{}\n", wrapped(&workload(report)), runs(&report.runs));
    if report.runs.iter().any(|run| !run.locks_after.is_empty()) {
        let _ = write!(
            text,
            "\nLocks of 1.0.x during the large PUTs after ageing\n{}\n",
            locks(&report.runs)
        );
    }
    if !report.paired.is_empty() {
        let _ = write!(
            text,
            "\nServer CPU of a cure over none (one process, interleaved rounds, median of the ratios)\n{}\n",
            paired(&report.paired)
        );
    }
    let _ = write!(text, "\nVerdicts\n{}", verdicts(report));
    text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
}

/// What was run, in sentences; a line a topic.
pub fn workload(report: &Report) -> String {
    let settings = &report.settings;
    let (least, most) = settings.large_rounds;
    let few = least.min(LEAST_FOR_INTERVAL as u64);
    let mut text = format!(
        "Large: {} threads PUT {} each at a time, {least} to {most} pairs of rounds ({few} where nothing ages), median{}.\n\
         Small: {} threads, {} PUTs of {} bytes, {:.0} % on a new connection, {:.1} % misbehaving clients on top.\n\
         Server: {}, a process of its own for each library and cure.",
        settings.large_threads,
        size(settings.large_body),
        if settings.profile == "full" {
            ""
        } else {
            " (laptop size; --full: 100 MB, and 2,000,000 small PUTs)"
        },
        settings.small_threads,
        grouped(settings.small_requests),
        settings.small_body,
        settings.new_connections * 100.0,
        settings.misbehave * 100.0,
        settings.server_threads,
    );
    let mut versions: Vec<&str> = report.runs.iter().map(|run| &*run.version).collect();
    versions.dedup();
    if !versions.is_empty() {
        let _ = write!(text, "\nLibraries: {}.", versions.join("; "));
    }
    for host in &report.hosts {
        let _ = write!(text, "\n{}", self::host(host));
    }
    if let Some((run, aged)) = report.runs.iter().find_map(|run| run.aged.map(|aged| (run, aged))) {
        let _ = write!(
            text,
            "\nOn {} the process was AGED before the large PUTs were repeated: {} worker threads came, served one \
             small PUT each and ended, as they do in months. From 1.1.0 on a state goes with its thread: nothing to age.",
            run.line,
            grouped(aged.threads)
        );
    }
    let _ = write!(
        text,
        "\nAfter is compared with a fresh twin, a second process of the same library and cure that has served nothing but \
         {}these PUTs: the two take turns, and after/fresh is the median over the pairs. First is the server itself before its \
         small phase, earlier in the run: shown, not judged.",
        if report.hosts.is_empty() { "" } else { "its warm-up and " },
    );
    text
}

fn host(host: &Host) -> String {
    let WarmUp { requests, new_connections, megabytes } = host.warm_up;
    let mut text = format!(
        "{}: {} ({}), tomcat-native {}, {} {}. Each of its processes was warmed up by {} small PUTs a connector, {} of them on \
         a new connection, and {} MB of large ones.",
        host.line,
        host.tomcat,
        host.connector,
        host.tcnative,
        host.java,
        host.java_options.join(" "),
        grouped(requests),
        grouped(new_connections),
        grouped(megabytes),
    );
    text.push_str(
        " None and sweep are connectors of equal settings, the HygieneListener off and on; \
         for CPU they are compared in one process, and \"none again\" is a second connector without it.",
    );
    text
}

/// Breaks lines at spaces.
fn wrapped(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for topic in text.lines() {
        let mut line = String::new();
        for word in topic.split(' ') {
            if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
        lines.push(line);
    }
    lines.join("\n")
}

fn runs(runs: &[Run]) -> Table {
    let mut table = table(&[
        "line",
        "cure",
        "first\nMB/s",
        "fresh\nMB/s",
        "after\nMB/s",
        "after/\nfresh",
        "small\nreq/s",
        "us CPU\n/ req",
        "ms CPU\nper MB",
        "after",
        "state\npeak",
        "state\nend",
        "max.\nchain",
        "dirty\ntasks",
        "false\ncloses",
    ]);
    let mut last = "";
    for run in runs {
        let line = if run.line == last { "" } else { &*run.line };
        last = &run.line;
        table.add_row([
            line.to_owned(),
            run.cure.name().to_owned(),
            format!("{:.0}", run.large.first_mb_s),
            format!("{:.0}", run.large.fresh_mb_s),
            format!("{:.0}", run.large.after_mb_s),
            format!("{:.2}", run.large.after_over_fresh),
            format!("{:.0}", run.small.rps),
            format!("{:.0}", run.small.server_cpu_us_per_request),
            format!("{:.2}", run.large.fresh_server_cpu_ms_per_mb),
            format!("{:.2}", run.large.after_server_cpu_ms_per_mb),
            run.thread_states.peak.to_string(),
            run.thread_states.end.to_string(),
            dash(run.thread_states.longest_chain),
            dash(run.ledger.map(|ledger| ledger.dirty_tasks)),
            run.false_closes.to_string(),
        ]);
    }
    align(&mut table, 2);
    table
}

fn locks(runs: &[Run]) -> Table {
    let mut table =
        table(&["line", "cure", "lock", "acquisitions", "contended", "waited (all threads)"]);
    for run in runs {
        for lock in
            run.locks_after.iter().filter(|lock| lock.contended > 0 || lock.wait_ms > 0.0).take(3)
        {
            let Lock { name, acquisitions, contended, wait_ms } = lock;
            table.add_row([
                run.line.clone(),
                run.cure.name().to_owned(),
                name.clone(),
                grouped(*acquisitions),
                grouped(*contended),
                format!("{:.1} s", wait_ms / 1000.0),
            ]);
        }
    }
    align(&mut table, 3);
    table
}

fn paired(pairs: &[Paired]) -> Table {
    let mut table =
        table(&["line", "cure", "idle threads", "work", "cure", "none", "ratio", "95 %", "quads"]);
    for pair in pairs {
        table.add_row([
            pair.line.clone(),
            pair.title().to_owned(),
            grouped(pair.idle_threads),
            work(&pair.metric).to_owned(),
            cost(pair.cure_cost, &pair.metric),
            cost(pair.baseline_cost, &pair.metric),
            format!("{:.3}", pair.ratio),
            pair.interval().map_or("-".into(), |(low, high)| format!("[{low:.3}, {high:.3}]")),
            pair.samples.len().to_string(),
        ]);
    }
    align(&mut table, 5);
    table
}

fn verdicts(report: &Report) -> Table {
    let mut table = table(&["", "verdict", "value", "bound"]);
    for verdict in &report.verdicts {
        table.add_row([
            if verdict.holds { "holds" } else { "FAILS" }.to_owned(),
            verdict.name.clone(),
            plain(&verdict.value),
            verdict.bound.clone(),
        ]);
    }
    table
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_header(header);
    for component in [TableComponent::HeaderLines, TableComponent::MiddleHeaderIntersections] {
        table.set_style(component, '─');
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    if let Some(last) = table.column_mut(header.len() - 1) {
        last.set_padding((0, 0));
    }
    table
}

/// Figures to the right, from column `first` on.
fn align(table: &mut Table, first: usize) {
    for column in table.column_iter_mut().skip(first) {
        column.set_cell_alignment(CellAlignment::Right);
    }
}

/// What a metric of [`Paired`] is about, in words.
pub fn work(metric: &str) -> &str {
    match metric {
        "us_per_request" => "4 KB PUT, kept alive",
        "us_per_handshake" => "4 KB PUT, new connection",
        "ms_per_mb" => "MB of large PUTs",
        other => other,
    }
}

/// A cost with its unit.
pub fn cost(cost: f64, metric: &str) -> String {
    if metric == "ms_per_mb" { format!("{cost:.3} ms") } else { format!("{cost:.1} us") }
}

/// A verdict's value without the quotes of JSON.
pub fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Null => "-".into(),
        other => other.to_string(),
    }
}

/// The figure, or a dash where there is none.
pub fn dash(figure: Option<u64>) -> String {
    figure.map_or_else(|| "-".into(), |figure| figure.to_string())
}

/// 1234567 as 1,234,567.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes as people write them.
pub fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} KB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    #[test]
    fn it_fits_and_says_what_matters() {
        // A run is on libraries or on Tomcats: the longest name of a Tomcat is never beside the longest of a cure.
        let libraries =
            ["AGED", "20,000 worker threads", "CRYPTO_LOCK_ERR", "0.44", "[1.950, 2.080]", "holds"];
        let tomcats = ["Apache Tomcat/9.0.70", "its warm-up and these PUTs", "none again", "holds"];
        for (on_tomcats, expected) in [(false, &libraries[..]), (true, &tomcats)] {
            let mut report = example::report();
            let tomcat = report.hosts[0].line.clone();
            report.runs.retain(|run| (run.line == tomcat) == on_tomcats);
            report.paired.retain(|pair| (pair.line == tomcat) == on_tomcats);
            report.verdicts = crate::regress::judge(&report);
            if !on_tomcats {
                report.hosts.clear();
            }
            let text = text(&report);
            for line in text.lines() {
                assert!(line.chars().count() <= WIDTH, "{} columns: {line}", line.chars().count());
            }
            // Lines may break between any two words.
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for expected in expected {
                assert!(words.contains(expected), "{expected} is missing in\n{text}");
            }
        }
    }

    #[test]
    fn too_few_samples_show_no_interval() {
        let mut report = example::report();
        for pair in &mut report.paired {
            pair.samples.truncate(5);
        }
        assert!(!text(&report).contains("[1.950, 2.080]"));
    }

    #[test]
    fn numbers_as_people_write_them() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(size(16_000_000), "16 MB");
        assert_eq!(size(4_096), "4 KB");
    }
}
