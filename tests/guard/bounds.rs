//! Memory that stays bounded under a flood.

use std::time::SystemTime;

use sslsweep::hygiene::{Label, ledger, run};
use sslsweep_libssl::{Tls, faults};

use crate::common::{Expected, Outcome, told};

/// Memory of the process that is resident, in bytes.
fn resident() -> Outcome<usize> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<usize>()? * 1024)
}

/// What a flood may add; without a bound a million entries of some 300 bytes would add 300 MB.
const ALLOWED: usize = 24 << 20;

fn a_million_leftovers(tls: &'static Tls) -> Outcome {
    const EACH: u64 = 10;
    const TASKS: u64 = 100_000;
    let since = SystemTime::now();
    run("flood", || faults::pem_junk(tls));
    let before = resident()?;
    for _ in 0..TASKS {
        run("flood", || (0..EACH).for_each(|_| faults::pem_junk(tls)));
    }
    let grown = resident()?.saturating_sub(before);
    let (count, reason) = (EACH * TASKS + 1, "no start line");
    let left = told(Expected { label: "flood", reason, file: "pem_lib.c", count, since });
    assert!(!left.at_least);
    assert_eq!(ledger().label("flood").map(|flood| flood.entries.len()), Some(1));
    assert!(grown < ALLOWED, "{grown} bytes");
    println!("| {} | 1,000,000 leftovers of one kind | {} KiB |", tls.version(), grown >> 10);
    Ok(())
}

fn a_million_leftovers_of_one_task(tls: &'static Tls) -> Outcome {
    const ERRORS: usize = 1_000_000;
    let since = SystemTime::now();
    run("first", || faults::pem_junk(tls));
    let before = resident()?;
    run("flood", || (0..ERRORS).for_each(|_| faults::pem_junk(tls)));
    let grown = resident()?.saturating_sub(before);
    assert_eq!(tls.library().depth(), 0);
    let reason = "no start line";
    let left = told(Expected { label: "flood", reason, file: "pem_lib.c", count: 15, since });
    assert!(left.at_least, "the library keeps 15");
    assert!(grown < ALLOWED, "{grown} bytes");
    println!("| {} | 1,000,000 leftovers of one task | {} KiB |", tls.version(), grown >> 10);
    Ok(())
}

fn a_million_leftovers_of_100_000_labels(tls: &'static Tls) -> Outcome {
    const LABELS: i32 = 100_000;
    let raise = |number: i32| {
        for reason in 0..10 {
            // Other reasons with each task: up to 4095 fit into a code of 1.1.1.
            assert!(tls.library().raise(128, 1 + (10 * number + reason) % 4095, c"flood", 1));
        }
    };
    run("first", || raise(0));
    let before = resident()?;
    for number in 0..LABELS {
        run(Label::intern(&format!("label {number}")), || raise(number));
    }
    let grown = resident()?.saturating_sub(before);
    let ledger = ledger();
    assert_eq!(ledger.leftovers(), 10 * (LABELS as u64 + 1), "all are counted");
    assert_eq!(ledger.tasks(), LABELS as u64 + 1);
    assert!(ledger.labels.len() <= 256, "{} labels", ledger.labels.len());
    let entries: usize = ledger.labels.iter().map(|label| label.entries.len()).sum();
    assert!(entries <= 4096, "{entries} entries");
    assert!(ledger.not_told_apart > 0);
    let rest = ledger.label("(other labels)").ok_or("no place for the rest")?;
    assert!(rest.tasks > LABELS as u64 - 256, "{}", rest.tasks);
    assert!(grown < ALLOWED, "{grown} bytes");
    println!("| {} | 100,000 labels, 1,000,000 leftovers | {} KiB |", tls.version(), grown >> 10);
    Ok(())
}

mod leftovers {
    crate::on_lines!(super::a_million_leftovers: on_1_0_2 on_1_1_1 on_3_0);
}

mod one_task {
    crate::on_lines!(super::a_million_leftovers_of_one_task: on_1_0_2 on_1_1_1 on_3_0);
}

mod labels {
    crate::on_lines!(super::a_million_leftovers_of_100_000_labels: on_1_0_2 on_1_1_1 on_3_0);
}
