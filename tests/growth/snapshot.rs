//! The snapshot: that looking changes nothing, what it says, and its two written forms.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::collections::BTreeSet;

use sslsweep::libcrypto::memory;
use sslsweep::probe::{self, Finding, Kind, KnownBy, Level, Memory, Probe, Snapshot};
use sslsweep::{Guard, hygiene};
use sslsweep_libssl::{Context, LineFiles, Pair, Tls, faults};

use crate::common::{LINES, Outcome, contexts, figures, in_processes, on_each};

/// Lets an exchange happen and a few tasks be dirty. What it made stays until dropped.
fn live(tls: &'static Tls) -> Outcome<(Pair, [Context; 2])> {
    let (server, client) = contexts(tls)?;
    let mut pair = Pair::new(&server, &client)?;
    hygiene::run("handshake", || assert!(pair.handshake()));
    for _ in 0..3 {
        hygiene::run("parse", || faults::pem_junk(tls));
    }
    faults::sys_miss(tls);
    hygiene::run("open", || faults::sys_miss(tls));
    // So that this thread has a state, also where guards release it.
    tls.clear_errors();
    Ok((pair, [server, client]))
}

/// Whether it is this program's own: its certificates are made by an AWS-LC that is linked in.
fn is_own(finding: &Finding) -> bool {
    let program = std::env::current_exe().unwrap();
    finding.kind == Kind::BlindSpot && finding.text.starts_with(&*program.to_string_lossy())
}

fn on_a_monitor<R: Send>(look: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("monitor".to_owned());
        builder.spawn_scoped(scope, look).unwrap().join().unwrap()
    })
}

#[test]
fn looking_allocates_nothing_in_the_library_and_makes_no_state() -> Outcome {
    on_each(&["1.0.2", "1.1.1", "3.0", "3.6", "4.0"], |tls| {
        let library = tls.library();
        let _live = live(tls)?;
        // One error of this thread, which the looks must leave where it is.
        faults::pem_junk(tls);
        let queue = tls.peek_error();
        let before = figures(tls)?;
        let probe = Probe::new();
        let looked = on_a_monitor(|| {
            assert_eq!(library.state_in_memory(), Some(probe::ThreadState::Absent));
            let snapshot = probe.snapshot();
            let texts = (snapshot.to_json().unwrap(), snapshot.to_prometheus());
            let again = Probe::new().snapshot();
            assert_eq!(library.state_in_memory(), Some(probe::ThreadState::Absent));
            assert_eq!(memory::allocations_here(), 0, "by the monitor's thread");
            assert_eq!(snapshot.libraries[0].queue.has_state, Some(false));
            (texts, again)
        });
        // By any thread: a search would allocate on a thread of its own.
        assert_eq!(figures(tls)?, before);
        assert_eq!((library.depth(), tls.peek_error()), (1, queue));
        drop(looked);
        // The control: the same counters see an ordinary look at the queue.
        let made = on_a_monitor(|| {
            let _ = library.peek();
            memory::allocations_here()
        });
        assert!(made > 0 && figures(tls)?.allocations > before.allocations);
        tls.clear_errors();
        Ok(())
    })
}

#[test]
fn a_library_that_is_not_read_in_memory_is_left_out() -> Outcome {
    in_processes(&["aws-lc"], |line| {
        let tls = LineFiles::named(line)?.load_accounted()?;
        let snapshot = on_a_monitor(|| Probe::new().snapshot());
        let library = &snapshot.libraries[0];
        assert_eq!((library.queue.source, library.queue.depth), ("public-api", None));
        assert_eq!(library.thread_states.known_by, KnownBy::Unknown);
        assert_eq!(library.thread_states.alive, None);
        assert!(matches!(library.memory, Memory::NotCounted { .. }));
        for kind in [Kind::ClearsByItself, Kind::QueueNotRead] {
            assert_eq!(snapshot.findings_of(kind).count(), 1, "{:#?}", snapshot.findings);
        }
        valid(&snapshot)?;
        let _live = live(tls)?;
        let snapshot = Probe::new().snapshot();
        let states = &snapshot.libraries[0].thread_states;
        assert_eq!((states.known_by, states.alive), (KnownBy::GuardedThreads, Some(1)));
        valid(&snapshot)
    })
}

#[test]
fn the_snapshot_says_what_there_is() -> Outcome {
    on_each(&LINES, |tls| {
        let probe = Probe::new();
        let _live = live(tls)?;
        let snapshot = probe.snapshot();
        valid(&snapshot)?;
        assert_eq!(snapshot.process.id, std::process::id());
        assert!(snapshot.process.name.starts_with("growth"), "{}", snapshot.process.name);
        let [library] = snapshot.libraries.as_slice() else {
            return Err("more than one library".into());
        };
        assert_eq!(library.path, tls.libcrypto().display().to_string());
        assert_eq!((library.queue.source, library.queue.depth), ("layout", Some(0)));
        let is_1_0 = tls.version().starts_with("OpenSSL 1.0");
        let expected = if is_1_0 { KnownBy::Table } else { KnownBy::Accounting };
        assert_eq!(library.thread_states.known_by, expected);
        assert_eq!(library.thread_states.table.is_some(), is_1_0);
        let Memory::Counted { live_bytes, files, other_files, .. } = &library.memory else {
            return Err(format!("{:?}", library.memory).into());
        };
        assert_eq!(files.len(), probe::FILES_NAMED);
        let named: u64 = files.iter().map(|file| file.bytes).sum();
        assert_eq!(named + other_files.bytes, *live_bytes);
        assert_eq!(snapshot.growth.tasks, 5);
        assert_eq!(snapshot.growth.dirty_tasks, 4);
        assert!(library.growth.live_bytes.is_some_and(|bytes| bytes > 0));
        assert!(library.growth.live_bytes_per_1000_tasks.is_some());

        let dirty: Vec<_> = snapshot.findings_of(Kind::DirtyTasks).collect();
        assert_eq!(dirty.len(), 2, "{dirty:#?}");
        let parse = dirty.iter().find(|finding| finding.text.contains("`parse`")).unwrap();
        assert!(parse.text.contains("3 of 3 left errors, 3 in all"), "{parse}");
        assert!(parse.text.contains("read to its end"), "known to be benign: {parse}");
        let open = dirty.iter().find(|finding| finding.text.contains("`open`")).unwrap();
        assert!(open.text.contains("o such file") && open.text.contains("bss_file.c"), "{open}");
        let arrivals: Vec<_> = snapshot.findings_of(Kind::Arrivals).collect();
        assert_eq!(arrivals.len(), 1);
        assert!(arrivals[0].text.contains("code that has no guard"), "{}", arrivals[0]);
        for finding in &snapshot.findings {
            println!("measured: {finding}");
        }
        Ok(())
    })
}

#[test]
fn without_accounting_the_snapshot_says_so_and_knows_less() -> Outcome {
    in_processes(&LINES, |line| {
        let tls = LineFiles::named(line)?.load()?;
        let unguarded = Probe::new().snapshot();
        valid(&unguarded)?;
        let Memory::NotCounted { why } = &unguarded.libraries[0].memory else {
            return Err("memory is counted".into());
        };
        assert!(why.contains("install_early"), "{why}");
        let _live = live(tls)?;
        let guarded = Probe::new().snapshot();
        valid(&guarded)?;
        let known = [&unguarded, &guarded].map(|snapshot| {
            let states = &snapshot.libraries[0].thread_states;
            (states.known_by, states.alive)
        });
        if line == "1.0.2" {
            assert_eq!(known.map(|(by, _)| by), [KnownBy::Table; 2]);
        } else {
            let states = [(KnownBy::Unknown, None), (KnownBy::GuardedThreads, Some(1))];
            assert_eq!(known, states);
        }
        Ok(())
    })
}

#[test]
fn states_of_idle_threads_are_told_from_those_of_ended_ones() -> Outcome {
    on_each(&["1.0.2"], |tls| {
        let library = tls.library();
        let probe = Probe::new();
        let all = std::sync::Barrier::new(101);
        std::thread::scope(|scope| -> Outcome {
            for _ in 0..100 {
                scope.spawn(|| {
                    library.clear();
                    all.wait();
                    all.wait();
                    library.release();
                });
            }
            all.wait();
            let snapshot = probe.snapshot();
            all.wait();
            valid(&snapshot)?;
            let library = &snapshot.libraries[0];
            assert_eq!(library.growth.thread_states, Some(100));
            let table = library.thread_states.table.as_ref().ok_or("a table")?;
            let listed = table.threads.len() + table.threads_left_out;
            assert_eq!(
                (table.threads.len(), Some(listed as u64)),
                (50, library.thread_states.alive)
            );
            let found: Vec<_> = snapshot.findings_of(Kind::StatesRising).collect();
            assert_eq!(found.len(), 1, "{:#?}", snapshot.findings);
            println!("measured: {}", found[0]);
            assert_eq!(snapshot.findings_of(Kind::StatesOfEndedThreads).count(), 0);
            Ok(())
        })
    })
}

#[test]
fn a_blind_spot_is_named() -> Outcome {
    in_processes(&["hidden"], |_| {
        let manifest = std::env::var_os("SSLSWEEP_LINES")
            .map_or_else(|| ".cache/lines/lines.json".into(), std::path::PathBuf::from);
        let entries: serde_json::Value = serde_json::from_slice(&std::fs::read(&manifest)?)?;
        let entries = entries.as_array().ok_or("the manifest is a list")?;
        let hidden = entries.iter().find(|entry| entry["name"] == "hidden");
        let object = hidden.and_then(|entry| entry["object"].as_str()).ok_or("no hidden object")?;
        // SAFETY: a library of the manifest, which this project's tests trust.
        let handle = unsafe { sslsweep::sys::dl::Handle::load(std::path::Path::new(object)) }?;
        let snapshot = Probe::new().snapshot();
        valid(&snapshot)?;
        drop(handle);
        let (own, found): (Vec<_>, Vec<_>) =
            snapshot.findings_of(Kind::BlindSpot).partition(|finding| is_own(finding));
        assert_eq!((own.len(), found.len()), (1, 1), "{found:#?}");
        assert!(found[0].text.contains("OpenSSL 3.0.15"), "{}", found[0]);
        // The program's own has no TLS, and no connection depends on it.
        assert_eq!((own[0].level, found[0].level), (Level::Note, Level::Warning));
        println!("measured: {}", found[0]);
        let metric = snapshot.to_prometheus();
        assert!(metric.contains("\nsslsweep_blind_spots 2\n"), "{metric}");
        Ok(())
    })
}

#[test]
fn a_process_without_libcrypto_has_a_snapshot() -> Outcome {
    in_processes(&["none"], |_| {
        let _guard = Guard::enter("nothing");
        let snapshot = Probe::new().snapshot();
        valid(&snapshot)?;
        assert!(snapshot.libraries.is_empty(), "{:#?}", snapshot.libraries);
        assert!(snapshot.findings.iter().all(is_own), "{:#?}", snapshot.findings);
        Ok(())
    })
}

#[test]
fn prometheus_reads_the_text() -> Outcome {
    on_each(&LINES, |tls| {
        let _live = live(tls)?;
        let snapshot = Probe::new().snapshot();
        let text = snapshot.to_prometheus();
        let path = tls.libcrypto().display();
        for line in [
            "# HELP sslsweep_tasks_total Guarded tasks that have ended".to_owned(),
            "# TYPE sslsweep_tasks_total counter".to_owned(),
            "sslsweep_tasks_total{label=\"parse\"} 3".to_owned(),
            "sslsweep_dirty_tasks_total{label=\"parse\"} 3".to_owned(),
            "# TYPE sslsweep_thread_states gauge".to_owned(),
            "# TYPE sslsweep_thread_state_bytes gauge".to_owned(),
            "# TYPE sslsweep_libcrypto_live_bytes gauge".to_owned(),
            format!("sslsweep_longest_chain{{library=\"{path}\"}} 1"),
        ] {
            let there = text.lines().any(|own| own.starts_with(&line));
            assert_eq!(there, !line.contains("chain") || line_is_1_0(tls), "{line}\n{text}");
        }
        assert!(text.contains("reason=\"PEM routines"), "{text}");
        shaped(&text);
        Ok(())
    })
}

fn line_is_1_0(tls: &Tls) -> bool {
    tls.version().starts_with("OpenSSL 1.0")
}

/// The rules of the text format: each sample belongs to a family that was announced with a help and a
/// type; a series occurs once; values are numbers.
fn shaped(text: &str) {
    let (mut helped, mut typed, mut series) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for line in text.lines() {
        let words: Vec<_> = line.split(' ').collect();
        match words.as_slice() {
            ["#", "HELP", name, ..] => assert!(helped.insert((*name).to_owned()), "{line}"),
            ["#", "TYPE", name, "counter"] => {
                assert!(name.ends_with("_total") && typed.insert((*name).to_owned()), "{line}");
            }
            ["#", "TYPE", name, "gauge"] => {
                assert!(!name.ends_with("_total") && typed.insert((*name).to_owned()), "{line}");
            }
            ["#", ..] => panic!("{line}"),
            _ => {
                let (labelled, value) = line.rsplit_once(' ').unwrap();
                assert!(value.parse::<f64>().is_ok(), "{line}");
                assert!(series.insert(labelled.to_owned()), "twice: {line}");
                let name = labelled.split('{').next().unwrap();
                assert!(helped.contains(name) && typed.contains(name), "{line}");
                assert!(name.starts_with("sslsweep_"), "{line}");
            }
        }
    }
    assert!(series.len() > 10, "{text}");
}

/// Holds the snapshot's JSON to the committed schema.
pub fn valid(snapshot: &Snapshot) -> Outcome {
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/snapshot.schema.json");
    let schema = serde_json::from_slice(&std::fs::read(schema)?)?;
    let validator = jsonschema::validator_for(&schema)?;
    let mut json: serde_json::Value = serde_json::from_str(&snapshot.to_json()?)?;
    let errors: Vec<_> = validator
        .iter_errors(&json)
        .map(|error| format!("{}: {error}", error.instance_path))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    // The control: the schema notices what it does not know and what is not there.
    let own = json.as_object_mut().ok_or("an object")?;
    own.insert("unheard".to_owned(), serde_json::Value::Null);
    assert!(!validator.is_valid(&json));
    let own = json.as_object_mut().ok_or("an object")?;
    own.remove("unheard");
    own.remove("ledger");
    assert!(!validator.is_valid(&json));
    Ok(())
}
