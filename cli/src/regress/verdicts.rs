//! What a run must show.

use serde_json::{Value, json};
use sslsweep::probe::Line;

use crate::report::model::{Bodies, Cure, Paired, Report, Run, Verdict};

/// Large PUTs after ageing, of what they were: the regression, when nothing is released.
const REGRESSION: f64 = 0.7;
/// ... and when sslsweep sweeps.
const CURED: f64 = 0.95;
/// Thread states of a 1.0.x process that released none.
const STATES: u64 = 1000;
/// Server CPU with sslsweep, of what it is with nothing.
const OVERHEAD: f64 = 1.02;
/// The lock of the 1.0.x table.
const TABLE_LOCK: &str = "CRYPTO_LOCK_ERR";

/// Judges runs and comparisons. Only what was run is judged: lines and cures may be left out by hand.
pub fn judge(report: &Report) -> Vec<Verdict> {
    let Report { hosts, runs, paired, .. } = report;
    let is_tomcat = |line: &str| hosts.iter().any(|host| host.line == line);
    let mut verdicts = Vec::new();
    let old = |run: &&Run| line_of(run) == Line::V1_0 && run.aged.is_some();
    for run in runs.iter().filter(old) {
        match run.cure {
            Cure::ClearEachCall => regression(run, &mut verdicts),
            Cure::Sweep => cured(run, &mut verdicts),
            Cure::None | Cure::ReleaseEveryTask => {}
        }
    }
    for run in runs.iter().filter(|run| is_tomcat(&run.line) && run.cure == Cure::Sweep) {
        not_slower(run, format!("{}: large PUTs after/fresh, sweep", run.line), &mut verdicts);
        verdicts.push(verdict(
            format!("{}: tasks under a guard, sweep", run.line),
            run.ledger.is_some_and(|ledger| ledger.tasks >= run.small.connections),
            json!(run.ledger.map(|ledger| ledger.tasks)),
            format!(">= {} (connections of the small phase)", run.small.connections),
            "the listener did not hook the connector: look at what it says in the server's log",
        ));
    }
    // On a Tomcat the rest is told: a new connection costs a hundred times what a guard could.
    let judged = |pair: &&Paired| {
        pair.cure == Cure::Sweep && (pair.metric == "us_per_request" || !is_tomcat(&pair.line))
    };
    for pair in paired.iter().filter(judged) {
        let metric = match &*pair.metric {
            "ms_per_mb" => "MB",
            "us_per_handshake" => "request on a new connection",
            _ => "request",
        };
        verdicts.push(verdict(
            format!("{}: server CPU per {metric}, sweep over none", pair.line),
            pair.ratio <= OVERHEAD,
            json!(rounded(pair.ratio)),
            format!("<= {OVERHEAD}"),
            "if the interval in the table is wide the machine was busy: run again, or with more --pairs; \
             if it is narrow, `sslsweep cost` says what the guard itself costs",
        ));
    }
    for run in runs {
        if line_of(run) == Line::Unknown {
            verdicts.push(verdict(
                format!("{} {}: a line whose bounds are known", run.line, run.cure),
                false,
                json!(run.version),
                "OpenSSL 1.0.x to 4.x, LibreSSL, BoringSSL or AWS-LC".into(),
                "its figures are in the report and mean nothing yet: what must hold there has to be found out first",
            ));
        }
        match run.cure {
            // Tomcat empties the queue itself before it uses it.
            Cure::None if is_poisoned(line_of(run)) && !is_tomcat(&run.line) => {
                verdicts.push(verdict(
                    format!("{}: healthy connections closed without a cure", run.line),
                    run.false_closes > 0,
                    json!(run.false_closes),
                    "> 0".into(),
                    "the workload poisons no thread: raise --misbehave, or --small-requests",
                ))
            }
            Cure::Sweep => verdicts.push(verdict(
                format!("{}: healthy connections closed with sweep", run.line),
                run.false_closes == 0,
                json!(run.false_closes),
                "= 0".into(),
                "a task ran without a guard, or an error arrived from code that has none: \
                 look at ledger arrivals in `sslsweep serve`'s stats",
            )),
            _ => {}
        }
    }
    let bodies = || runs.iter().map(|run| run.bodies).chain(paired.iter().map(|pair| pair.bodies));
    let all: Bodies = bodies().sum();
    verdicts.push(verdict(
        "bodies answered with the right count and hash".into(),
        all.sent > 0 && bodies().all(|bodies| bodies.verified == bodies.sent),
        json!(all.verified),
        format!("= {} (sent), > 0", all.sent),
        "a request was lost or changed: see runs[].bodies and paired[].bodies in report.json for where",
    ));
    verdicts
}

/// What a report says whose run did not go to its end, beside what was done until then.
pub fn unfinished(why: &str) -> Verdict {
    verdict(
        "the run went to its end".into(),
        false,
        json!(why),
        "yes".into(),
        "mend what is named, and run again",
    )
}

fn regression(run: &Run, verdicts: &mut Vec<Verdict>) {
    let longer = "let more threads come and go: --age";
    verdicts.push(verdict(
        format!("{}, aged: large PUTs after/fresh, clear-each-call", run.line),
        run.large.after_over_fresh <= REGRESSION,
        json!(rounded(run.large.after_over_fresh)),
        format!("<= {REGRESSION}"),
        longer,
    ));
    verdicts.push(verdict(
        format!("{}, aged: thread states at the end, clear-each-call", run.line),
        run.thread_states.end > STATES,
        json!(run.thread_states.end),
        format!("> {STATES}"),
        longer,
    ));
    // Where nobody waited, the first of the list is only the one that was taken most often.
    let top = run.locks_after.first().filter(|lock| lock.wait_ms > 0.0 && lock.contended > 0);
    verdicts.push(verdict(
        format!("{}, aged: lock waited for longest, clear-each-call", run.line),
        top.is_some_and(|lock| lock.name == TABLE_LOCK),
        json!(top.map_or("nobody waited", |lock| &*lock.name)),
        TABLE_LOCK.into(),
        longer,
    ));
}

fn cured(run: &Run, verdicts: &mut Vec<Verdict>) {
    not_slower(run, format!("{}, aged: large PUTs after/fresh, sweep", run.line), verdicts);
    verdicts.push(verdict(
        format!("{}, aged: thread states at the end, sweep", run.line),
        run.thread_states.end <= run.thread_states.live_threads,
        json!(run.thread_states.end),
        format!("<= {} (live threads)", run.thread_states.live_threads),
        "a thread ended without its release: see thread_states in report.json for when they grew",
    ));
}

fn not_slower(run: &Run, name: String, verdicts: &mut Vec<Verdict>) {
    verdicts.push(verdict(
        name,
        run.large.after_over_fresh >= CURED,
        json!(rounded(run.large.after_over_fresh)),
        format!(">= {CURED}"),
        "compare the rounds in report.json: if they scatter, the machine was busy (raise --rounds); if the \
         states grew, a thread ended without its release",
    ));
}

/// The line of a run's library, from its version.
fn line_of(run: &Run) -> Line {
    Line::from_version_text(&run.version)
}

/// Whether a stale error turns a would-block read into a fatal one (OPENSSL.md, Poisoning).
fn is_poisoned(line: Line) -> bool {
    matches!(line, Line::V1_0 | Line::V1_1 | Line::V3)
}

fn verdict(name: String, holds: bool, value: Value, bound: String, next_step: &str) -> Verdict {
    Verdict { name, holds, value, bound, next_step: (!holds).then(|| next_step.into()) }
}

fn rounded(ratio: f64) -> f64 {
    (ratio * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example;

    fn failing(report: &Report) -> Vec<String> {
        let verdicts = judge(report);
        assert!(verdicts.iter().all(|verdict| verdict.holds == verdict.next_step.is_none()));
        verdicts.into_iter().filter(|verdict| !verdict.holds).map(|verdict| verdict.name).collect()
    }

    /// Changes one run of the example, and names the only verdict that must fail then.
    fn breaks(line: &str, cure: Cure, change: impl FnOnce(&mut Run), expected: &str) {
        let mut report = example::report();
        let run = report.runs.iter_mut().find(|run| run.line == line && run.cure == cure);
        change(run.expect("in the example"));
        assert_eq!(failing(&report), [expected]);
    }

    #[test]
    fn everything_holds_in_the_example() {
        let report = example::report();
        assert_eq!(failing(&report), [""; 0]);
        assert_eq!(judge(&report).len(), 5 + 6 + 6 + 4 + 1);
    }

    #[test]
    fn each_verdict_can_fail() {
        breaks(
            "1.0.2",
            Cure::ClearEachCall,
            |run| run.large.after_over_fresh = 0.71,
            "1.0.2, aged: large PUTs after/fresh, clear-each-call",
        );
        breaks(
            "1.0.2",
            Cure::ClearEachCall,
            |run| run.thread_states.end = 1000,
            "1.0.2, aged: thread states at the end, clear-each-call",
        );
        breaks(
            "1.0.2",
            Cure::ClearEachCall,
            |run| run.locks_after.reverse(),
            "1.0.2, aged: lock waited for longest, clear-each-call",
        );
        let waiting = "1.0.2, aged: lock waited for longest, clear-each-call";
        let no_time = |run: &mut Run| {
            run.locks_after.iter_mut().for_each(|lock| lock.wait_ms = 0.0);
        };
        let no_waiter = |run: &mut Run| {
            run.locks_after.iter_mut().for_each(|lock| lock.contended = 0);
        };
        breaks("1.0.2", Cure::ClearEachCall, no_time, waiting);
        breaks("1.0.2", Cure::ClearEachCall, no_waiter, waiting);
        breaks("1.0.2", Cure::ClearEachCall, |run| run.locks_after.clear(), waiting);
        breaks(
            "1.0.2",
            Cure::Sweep,
            |run| run.large.after_over_fresh = 0.949,
            "1.0.2, aged: large PUTs after/fresh, sweep",
        );
        breaks(
            "1.0.2",
            Cure::Sweep,
            |run| run.thread_states.end = run.thread_states.live_threads + 1,
            "1.0.2, aged: thread states at the end, sweep",
        );
        for line in ["1.0.2", "1.1.1", "3.0"] {
            let (poisoned, swept) = (
                format!("{line}: healthy connections closed without a cure"),
                format!("{line}: healthy connections closed with sweep"),
            );
            breaks(line, Cure::None, |run| run.false_closes = 0, &poisoned);
            breaks(line, Cure::Sweep, |run| run.false_closes = 1, &swept);
        }
    }

    #[test]
    fn a_tomcat_has_bounds_of_its_own() {
        let line = "tomcat9-apr";
        let slower = "tomcat9-apr: large PUTs after/fresh, sweep";
        let unhooked = "tomcat9-apr: tasks under a guard, sweep";
        breaks(line, Cure::Sweep, |run| run.large.after_over_fresh = 0.949, slower);
        breaks(line, Cure::Sweep, |run| run.ledger = None, unhooked);
        let few = |run: &mut Run| {
            run.ledger.iter_mut().for_each(|ledger| ledger.tasks = run.small.connections - 1);
        };
        breaks(line, Cure::Sweep, few, unhooked);
        let closed = "tomcat9-apr: healthy connections closed with sweep";
        breaks(line, Cure::Sweep, |run| run.false_closes = 1, closed);
        let mut report = example::report();
        for run in report.runs.iter_mut().filter(|run| run.line == line && run.cure == Cure::None) {
            run.false_closes = 0;
        }
        for pair in report.paired.iter_mut().filter(|pair| pair.line == line) {
            pair.ratio = 1.021;
        }
        let request = "tomcat9-apr: server CPU per request, sweep over none";
        assert_eq!(failing(&report), [request]);
    }

    #[test]
    fn overhead_is_judged_per_request_per_handshake_and_per_mb() {
        for metric in ["us_per_request", "us_per_handshake", "ms_per_mb"] {
            let mut report = example::report();
            let pair = report
                .paired
                .iter_mut()
                .find(|pair| pair.cure == Cure::Sweep && pair.metric == metric);
            pair.expect("in the example").ratio = 1.021;
            assert_eq!(failing(&report).len(), 1);
        }
    }

    #[test]
    fn what_releasing_costs_is_told_not_judged() {
        let mut report = example::report();
        for pair in report.paired.iter_mut().filter(|pair| pair.cure == Cure::ReleaseEveryTask) {
            pair.ratio = 9.0;
        }
        assert_eq!(failing(&report), [""; 0]);
    }

    #[test]
    fn lines_that_clear_by_themselves_need_not_close_anything() {
        let mut report = example::report();
        report.runs.retain(|run| run.line == "3.0");
        report.paired.clear();
        for run in &mut report.runs {
            run.version = "OpenSSL 4.0.3 9 Jun 2026".into();
            run.false_closes = 0;
        }
        assert_eq!(failing(&report), [""; 0]);
    }

    #[test]
    fn a_body_that_is_missing_anywhere_fails() {
        let bodies = "bodies answered with the right count and hash";
        breaks("3.0", Cure::Sweep, |run| run.bodies.verified -= 1, bodies);
        let mut report = example::report();
        report.paired[0].bodies.verified = 0;
        assert_eq!(failing(&report), [bodies]);
        // One too many elsewhere makes good for nothing.
        report.paired[1].bodies.verified += report.paired[0].bodies.sent;
        assert_eq!(failing(&report), [bodies]);
    }

    #[test]
    fn a_library_that_is_not_known_does_not_pass() {
        for version in ["", "1.0.2o", "OpenSSL 5.0.0 1 Jan 2030"] {
            let mut report = example::report();
            report.runs.truncate(1);
            report.paired.clear();
            report.runs[0].version = version.into();
            let failing = failing(&report);
            assert_eq!(failing, ["1.0.2 none: a line whose bounds are known"], "{version}");
        }
    }

    #[test]
    fn an_empty_run_does_not_pass() {
        let mut report = example::report();
        report.runs.clear();
        report.paired.clear();
        assert_eq!(failing(&report).len(), 1);
    }
}
