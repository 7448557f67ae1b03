//! The report as one HTML page: no script, no external file, readable in light and dark.

use std::fmt::Write;

use super::ReportError;
use super::model::{Cure, Report, Run};
use super::plots;
use super::table::{cost, dash, grouped, plain, size, work};

const STYLE: &str = include_str!("style.css");

/// The page.
pub fn page(report: &Report) -> Result<String, ReportError> {
    let mut page = String::new();
    // Writing to a string does not fail.
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>sslsweep regress</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
    );
    let failing = report.verdicts.iter().filter(|verdict| !verdict.holds).count();
    let _ = write!(
        page,
        "<h1>Large PUTs after small ones</h1>\n<p class=\"lead\">{} of {} verdicts hold. The run took {:.0} s.</p>\n{}",
        report.verdicts.len() - failing,
        report.verdicts.len(),
        report.seconds,
        verdicts(report)
    );
    let _ = write!(
        page,
        "<h2>Workload</h2>\n<p>{}</p>\n",
        escaped(&super::table::workload(report)).replace("\n", "<br>\n")
    );
    page.push_str(&legend());
    if report.runs.is_empty() {
        page.push_str("<p>Nothing was run to its end.</p>\n</main>\n</body>\n</html>\n");
        return Ok(page);
    }
    let _ = write!(
        page,
        "<h2>Large PUTs, fresh and after</h2>\n<figure>{}<figcaption>Pale: a fresh process. Solid: one after the small phase{}, in turns with it. \
         The figure above a pair is after/fresh.</figcaption></figure>\n",
        plots::throughput(report)?,
        if report.runs.iter().any(|run| run.aged.is_some()) {
            " (and, on 1.0.x, after ageing)"
        } else {
            ""
        }
    );
    for line in old_lines(report) {
        let runs: Vec<&Run> = report.runs.iter().filter(|run| run.line == line).collect();
        let title = runs.first().map_or_else(String::new, |run| run.title());
        let _ = write!(
            page,
            "<h2>Thread states on {}</h2>\n<figure>{}<figcaption>Every state that no thread owns any more \
             stays in the table, and each look at the error queue walks its chain under one lock. A dot marks the end of ageing.</figcaption></figure>\n",
            escaped(&title),
            plots::growth(&runs)?
        );
    }
    if !report.paired.is_empty() {
        let _ = write!(
            page,
            "<h2>What the cures cost on today's OpenSSL</h2>\n<figure>{}<figcaption>Server CPU of a cure over none, in \
             one process, interleaved rounds: median of the ratios, and its 95 % interval (the line across the end of a bar).</figcaption></figure>\n",
            plots::cost(&report.paired)?
        );
        page.push_str(&paired(report));
    }
    page.push_str("<h2>All runs</h2>\n");
    page.push_str(&runs(report));
    page.push_str(&locks(report));
    page.push_str("</main>\n</body>\n</html>\n");
    Ok(page)
}

fn verdicts(report: &Report) -> String {
    let rows = report.verdicts.iter().map(|verdict| {
        let (class, word) = if verdict.holds { ("holds", "holds") } else { ("fails", "fails") };
        let next = verdict
            .next_step
            .as_deref()
            .map_or(String::new(), |next| format!("<br><small>{}</small>", escaped(next)));
        format!(
            "<tr><td class=\"{class}\">{word}</td><td class=\"w\">{}{next}</td><td>{}</td><td>{}</td></tr>\n",
            escaped(&verdict.name),
            escaped(&plain(&verdict.value)),
            escaped(&verdict.bound)
        )
    });
    table(&["", "verdict", "value", "bound"], rows)
}

fn runs(report: &Report) -> String {
    let rows = report.runs.iter().map(|run| {
        let states = &run.thread_states;
        let figures = [
            format!("{:.0}", run.large.first_mb_s),
            format!("{:.0}", run.large.fresh_mb_s),
            format!("{:.0}", run.large.after_mb_s),
            format!("{:.2}", run.large.after_over_fresh),
            format!("{:.2}", run.large.fresh_server_cpu_ms_per_mb),
            format!("{:.2}", run.large.after_server_cpu_ms_per_mb),
            format!("{:.0}", run.small.rps),
            format!("{:.0}", run.small.server_cpu_us_per_request),
            format!("{:.1}", run.small.latency_us.p99 as f64 / 1000.0),
            grouped(states.peak),
            grouped(states.end),
            dash(states.longest_chain),
            dash(run.ledger.map(|ledger| ledger.dirty_tasks)),
            run.false_closes.to_string(),
        ];
        let cells: String =
            figures.iter().map(|figure| format!("<td class=\"n\">{figure}</td>")).collect();
        format!(
            "<tr><td title=\"{}\">{}</td><td>{}{}</td>{cells}</tr>\n",
            escaped(&format!("{}, {}", run.version, run.library)),
            escaped(&run.line),
            swatch(run.cure),
            run.cure
        )
    });
    table(
        &[
            "line",
            "cure",
            ">first MB/s",
            ">fresh MB/s",
            ">after MB/s",
            ">after/ fresh",
            ">CPU ms/MB fresh",
            ">CPU ms/MB after",
            ">small req/s",
            ">CPU us/req",
            ">p99 ms",
            ">states peak",
            ">states end",
            ">longest chain",
            ">dirty tasks",
            ">false closes",
        ],
        rows,
    )
}

fn paired(report: &Report) -> String {
    let rows = report.paired.iter().map(|pair| {
        format!(
            "<tr><td>{}</td><td>{}{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{:.3}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
            escaped(&pair.line),
            swatch(pair.cure),
            pair.title(),
            escaped(work(&pair.metric)),
            grouped(pair.idle_threads),
            cost(pair.cure_cost, &pair.metric),
            cost(pair.baseline_cost, &pair.metric),
            pair.ratio,
            pair.interval().map_or("-".into(), |(low, high)| format!("{low:.3} to {high:.3}")),
            pair.samples.len()
        )
    });
    table(
        &[
            "line",
            "cure",
            "work",
            ">idle threads",
            ">with it",
            ">with none",
            ">ratio",
            ">95 %",
            ">quads",
        ],
        rows,
    )
}

fn locks(report: &Report) -> String {
    let of_run = |run: &Run| {
        let line = escaped(&run.line);
        let rows: Vec<String> = run
            .locks_after
            .iter()
            .filter(|lock| lock.contended > 0 || lock.wait_ms > 0.0)
            .take(3)
            .map(|lock| {
                format!(
                    "<tr><td>{line}</td><td>{}{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{:.1}</td></tr>\n",
                    swatch(run.cure),
                    run.cure,
                    escaped(&lock.name),
                    grouped(lock.acquisitions),
                    grouped(lock.contended),
                    lock.wait_ms / 1000.0
                )
            })
            .collect();
        rows
    };
    let rows: Vec<String> = report.runs.iter().flat_map(of_run).collect();
    if rows.is_empty() {
        return String::new();
    }
    let body = report.settings.large_body;
    format!(
        "<h2>Locks of 1.0.x</h2>\n<p>During the large PUTs ({} each) after ageing; the waiting time is the sum over all threads.</p>\n{}",
        size(body),
        table(
            &["line", "cure", "lock", ">acquisitions", ">contended", ">waited s"],
            rows.into_iter()
        )
    )
}

/// A table; a title that begins with `>` heads a column of figures.
fn table(header: &[&str], rows: impl Iterator<Item = String>) -> String {
    let title = |title: &&str| match title.strip_prefix('>') {
        Some(title) => format!("<th class=\"n\">{title}</th>"),
        None => format!("<th>{title}</th>"),
    };
    let header: String = header.iter().map(title).collect();
    let rows: String = rows.collect();
    format!(
        "<div class=\"wide\"><table>\n<thead><tr>{header}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
    )
}

fn legend() -> String {
    let words = [
        (Cure::None, "nothing is done"),
        (
            Cure::ClearEachCall,
            "<code>ERR_clear_error</code> before each TLS call: today's practice",
        ),
        (
            Cure::ReleaseEveryTask,
            "the thread state is given back after each task: the proposal of 2016",
        ),
        (Cure::Sweep, "the guard of sslsweep: the right thing per line"),
    ];
    let items: String = words
        .iter()
        .map(|(cure, text)| format!("<li>{}<b>{cure}</b> {text}</li>\n", swatch(*cure)))
        .collect();
    format!("<ul class=\"legend\">\n{items}</ul>\n")
}

fn swatch(cure: Cure) -> String {
    let plotters::style::RGBColor(red, green, blue) = plots::colour(cure);
    format!("<i style=\"background:rgb({red},{green},{blue})\"></i>")
}

/// Lines whose thread states live in the table of 1.0.x.
fn old_lines(report: &Report) -> Vec<&str> {
    let mut lines: Vec<&str> = report
        .runs
        .iter()
        .filter(|run| run.thread_states.longest_chain.is_some())
        .map(|run| &*run.line)
        .collect();
    lines.dedup();
    lines
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    #[test]
    fn one_page_without_anything_from_elsewhere() -> Result<(), ReportError> {
        let page = page(&example::report())?;
        let addresses: Vec<&str> = page
            .match_indices("://")
            .map(|(at, _)| &page[at - 4..(at + 22).min(page.len())])
            .collect();
        assert!(
            addresses.iter().all(|address| *address == "http://www.w3.org/2000/svg"),
            "{addresses:?}"
        );
        assert!(!page.contains("<script") && !page.contains("<link") && !page.contains("@import"));
        assert_eq!(page.matches("<svg").count(), 3);
        Ok(())
    }

    #[test]
    fn a_report_of_nothing_is_a_page_too() -> Result<(), ReportError> {
        let mut report = example::report();
        report.runs.clear();
        report.paired.clear();
        assert!(page(&report)?.contains("Nothing was run"));
        Ok(())
    }

    #[test]
    fn names_cannot_break_the_page() -> Result<(), ReportError> {
        let mut report = example::report();
        for run in &mut report.runs {
            run.line = "<b>&\"".into();
        }
        let page = page(&report)?;
        assert!(!page.contains("<b>&\""), "a name was not escaped");
        Ok(())
    }
}
