//! Case 21: memory rises with every worker thread that did TLS, because clearing a queue does not give
//! its state back.

use std::sync::{Arc, Barrier};

use sslsweep::hygiene;
use sslsweep::libcrypto::Library;
use sslsweep::probe::{Kind, KnownBy, Probe};

use crate::common::{LINES, Outcome, figures, on_each};

const THREADS: usize = 1000;

/// Threads that are alive together, so that each has an id of its own on 1.0.2 (pthread_self, as
/// servers had it), clear their queue once and end. Returns the bytes that a live one has.
fn threads_that(
    library: &'static Library,
    bytes: impl Fn() -> u64,
    work: fn(&'static Library),
) -> Outcome<u64> {
    let before = bytes();
    let (done, seen) = (Arc::new(Barrier::new(THREADS + 1)), Arc::new(Barrier::new(THREADS + 1)));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (done, seen) = (Arc::clone(&done), Arc::clone(&seen));
            let builder = std::thread::Builder::new().stack_size(64 * 1024);
            builder.spawn(move || {
                work(library);
                done.wait();
                seen.wait();
            })
        })
        .collect::<Result<_, _>>()?;
    done.wait();
    let alive = bytes().saturating_sub(before) / THREADS as u64;
    seen.wait();
    for thread in threads {
        thread.join().map_err(|_| "a thread panicked")?;
    }
    Ok(alive)
}

#[test]
fn states_rise_with_threads_on_1_0_2_alone_and_a_guard_keeps_them_flat() -> Outcome {
    on_each(&LINES, |tls| {
        let library = tls.library();
        let bytes = || figures(tls).map_or(0, |figures| figures.live_bytes);
        let is_1_0 = library.shares_states();

        // What is made on first use belongs to no thread.
        library.clear();
        let probe = Probe::new();
        let guarded = |library: &'static Library| hygiene::run("clear", || library.clear());
        threads_that(library, bytes, guarded)?;
        let snapshot = probe.snapshot();
        let growth = &snapshot.libraries[0].growth;
        assert_eq!(growth.thread_states, Some(0));
        assert!(growth.live_blocks.is_some_and(|blocks| blocks <= 0), "{growth:?}");
        // 3.0 keeps a list of its threads, 8 bytes for each that lived at the same time.
        assert!(growth.live_bytes.is_some_and(|bytes| bytes <= 16 * THREADS as i64), "{growth:?}");
        assert_eq!(snapshot.growth.tasks, THREADS as u64);

        let probe = Probe::new();
        let alive = threads_that(library, bytes, Library::clear)?;
        let snapshot = probe.snapshot();
        let library = &snapshot.libraries[0];
        let left = library.growth.live_bytes.ok_or("memory is counted")?;
        println!(
            "measured: {alive} B per live thread, {} states and {left} B left by {THREADS} threads",
            library.growth.thread_states.unwrap_or(-1),
        );
        let size = tls.library().state_size().ok_or("the layout is known")?;
        assert!(alive >= size as u64, "{alive}");
        let ended: Vec<_> = snapshot.findings_of(Kind::StatesOfEndedThreads).collect();
        let chains = snapshot.findings_of(Kind::LongChain).count();
        if is_1_0 {
            assert_eq!(library.thread_states.known_by, KnownBy::Table);
            assert_eq!(library.growth.thread_states, Some(THREADS as i64));
            assert!(left >= 600 * THREADS as i64, "{left}");
            // Stack addresses agree in their low bits: one chain.
            let table = library.thread_states.table.as_ref().ok_or("a table")?;
            assert!(table.longest_chain.is_some_and(|chain| chain >= THREADS / 2), "{table:?}");
            assert_eq!((ended.len(), chains), (1, 1), "{:#?}", snapshot.findings);
            println!("measured: {}", ended[0]);
        } else {
            assert_eq!((library.growth.thread_states, left), (Some(0), 0));
            assert_eq!((ended.len(), chains), (0, 0), "{:#?}", snapshot.findings);
        }
        Ok(())
    })
}
