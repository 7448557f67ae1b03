//! A made-up report in which every verdict holds, for tests.

use super::model::{
    Aged, Bodies, Cure, Growth, Host, Large, LargeRound, LedgerFigures, Lock, Paired, Quad, Report,
    Run, Settings, Small, ThreadStates, WarmUp,
};
use crate::load::output::Latency;

/// Three lines, four cures, all comparisons.
pub fn report() -> Report {
    let lines = [
        ("1.0.2", "OpenSSL 1.0.2o  27 Mar 2018"),
        ("1.1.1", "OpenSSL 1.1.1g  21 Apr 2020"),
        ("3.0", "OpenSSL 3.0.19 27 Jan 2026"),
    ];
    let tomcat = ("tomcat9-apr", "OpenSSL 3.0.19 27 Jan 2026");
    let mut report = Report {
        hosts: vec![host(tomcat.0)],
        settings: Settings {
            profile: "laptop".into(),
            server_threads: "pool:200".into(),
            small_threads: 200,
            small_requests: 12_000,
            small_body: 4096,
            new_connections: 0.1,
            misbehave: 0.02,
            large_threads: 20,
            large_body: 16_000_000,
            large_rounds: (6, 14),
            age: 20_000,
            idle_threads: 2_000,
            pairs: (9, 40),
        },
        runs: lines
            .iter()
            .flat_map(|(line, version)| Cure::ALL.map(|cure| run(line, version, cure)))
            .chain([Cure::None, Cure::Sweep].map(|cure| run(tomcat.0, tomcat.1, cure)))
            .collect(),
        paired: ["1.1.1", "3.0"]
            .iter()
            .flat_map(|line| paired(line))
            .chain(paired_tomcat(tomcat.0))
            .collect(),
        verdicts: Vec::new(),
        seconds: 214.2,
    };
    report.verdicts = crate::regress::judge(&report);
    report
}

fn run(line: &str, version: &str, cure: Cure) -> Run {
    let old = line == "1.0.2";
    let leaks = old && matches!(cure, Cure::None | Cure::ClearEachCall);
    let end = if leaks {
        20_201
    } else if old {
        1
    } else {
        200
    };
    let after = if old && cure == Cure::ClearEachCall { 312.6 } else { 705.0 };
    let lock = |name: &str, wait_ms| Lock {
        name: name.into(),
        acquisitions: 9_403_221,
        contended: 5_113_000,
        wait_ms,
    };
    let locks = if old {
        vec![lock("CRYPTO_LOCK_ERR", 41_000.0), lock("CRYPTO_LOCK_SSL_CTX", 90.5)]
    } else {
        Vec::new()
    };
    Run {
        line: line.into(),
        library: format!("/lines/{line}/libssl.so"),
        version: version.into(),
        cure,
        small: Small {
            threads: 200,
            requests: 12_000,
            bytes: 4096,
            rps: 5_114.2,
            server_cpu_us_per_request: 151.0,
            connections: 1_200,
            misbehaved: 240,
            latency_us: Latency { p50: 20_000, p90: 42_000, p99: 93_000, max: 180_000 },
        },
        large: Large {
            threads: 20,
            bytes: 16_000_000,
            fresh_mb_s: 711.0,
            after_mb_s: after,
            after_over_fresh: after / 711.0,
            ratio_low: after / 711.0 - 0.01,
            ratio_high: after / 711.0 + 0.01,
            first_mb_s: 705.0,
            first_rounds: vec![round(705.0); 3],
            fresh_rounds: vec![round(711.0); 6],
            after_rounds: vec![round(after); 6],
            fresh_server_cpu_ms_per_mb: 1.31,
            after_server_cpu_ms_per_mb: 1.31 * 711.0 / after,
        },
        aged: old.then_some(Aged { threads: 20_000, states: end }),
        thread_states: ThreadStates {
            peak: end.max(180),
            end,
            longest_chain: old.then_some(end),
            bytes: end * 600,
            live_threads: 200,
        },
        ledger: (cure == Cure::Sweep).then_some(LedgerFigures {
            tasks: 90_000,
            dirty_tasks: 200,
            leftovers: 310,
        }),
        locks: locks.clone(),
        locks_after: locks,
        bodies: Bodies { sent: 12_480, verified: 12_480 },
        false_closes: if cure == Cure::None { 140 } else { 0 },
        growth: (0_u32..40).map(|n| growth(f64::from(n) / 4.0, end, old)).collect(),
    }
}

fn round(mb_s: f64) -> LargeRound {
    LargeRound { mb_s, server_cpu_ms_per_mb: 1.31 }
}

fn growth(seconds: f64, end: u64, old: bool) -> Growth {
    let (phase, states) = match seconds {
        ..3.0 => ("fresh", 21),
        3.0..6.0 => ("small", 200),
        _ => ("after", end),
    };
    let states = states.min(end.max(4));
    Growth {
        seconds,
        phase: phase.into(),
        states,
        longest_chain: old.then_some(states),
        live_threads: 200,
    }
}

fn host(line: &str) -> Host {
    Host {
        line: line.into(),
        tomcat: "Apache Tomcat/9.0.70".into(),
        connector: "https-openssl-apr-127.0.0.1-auto-1-40001".into(),
        tcnative: "1.2.35".into(),
        java: "OpenJDK 64-Bit Server VM 17.0.15+6".into(),
        java_options: vec!["-Xms512m".into(), "-Xmx512m".into()],
        warm_up: WarmUp { requests: 100_000, new_connections: 5_000, megabytes: 1_280 },
    }
}

fn pair(
    line: &str,
    cure: Cure,
    metric: &str,
    idle_threads: u64,
    ratio: f64,
    baseline_cost: f64,
) -> Paired {
    Paired {
        line: line.into(),
        cure,
        baseline: Cure::None,
        metric: metric.into(),
        idle_threads,
        ratio,
        ratio_low: ratio - 0.05,
        ratio_high: ratio + 0.08,
        baseline_cost,
        cure_cost: baseline_cost * ratio,
        samples: vec![Quad { baseline: baseline_cost, cure: baseline_cost * ratio }; 9],
        bodies: Bodies { sent: 15_200, verified: 15_200 },
        false_closes: 0,
        ledger: None,
    }
}

fn paired(line: &str) -> Vec<Paired> {
    vec![
        pair(line, Cure::Sweep, "us_per_request", 0, 1.003, 61.2),
        pair(line, Cure::Sweep, "us_per_handshake", 0, 1.004, 590.0),
        pair(line, Cure::Sweep, "ms_per_mb", 0, 0.999, 1.214),
        pair(line, Cure::ReleaseEveryTask, "us_per_request", 2_000, 2.0, 61.2),
        pair(line, Cure::ReleaseEveryTask, "us_per_handshake", 2_000, 1.04, 590.0),
    ]
}

fn paired_tomcat(line: &str) -> Vec<Paired> {
    let ledger = LedgerFigures { tasks: 7_600, dirty_tasks: 0, leftovers: 0 };
    let swept = |pair: Paired| Paired { ledger: Some(ledger), ..pair };
    vec![
        swept(pair(line, Cure::Sweep, "us_per_request", 0, 1.006, 45.1)),
        pair(line, Cure::None, "us_per_request", 0, 1.001, 45.1),
        // What is not judged may be anything.
        swept(pair(line, Cure::Sweep, "us_per_handshake", 0, 1.03, 610.0)),
        swept(pair(line, Cure::Sweep, "ms_per_mb", 0, 1.022, 0.9)),
    ]
}
