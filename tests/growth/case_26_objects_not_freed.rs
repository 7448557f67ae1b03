//! Case 26: the process grows with refused connections, because native objects wait for a finaliser.
//! Thread states are not to blame, and the snapshot says so.

use sslsweep::hygiene;
use sslsweep::probe::{Kind, Probe};
use sslsweep_libssl::{Connection, Pair, Tls};

use crate::common::{LINES, Outcome, contexts, on_each};

/// A connection that is refused, because its first bytes are not TLS.
fn refused(tls: &'static Tls, server: &sslsweep_libssl::Context) -> Outcome<impl Sized + use<>> {
    let (mut connection, mut wire) = Connection::over_wire(server, 16 * 1024)?;
    assert!(!connection.handshake().is_fatal());
    assert!(wire.write(b"GET / HTTP/1.1\r\nHost: not TLS\r\n\r\n") > 0);
    assert!(connection.handshake().is_fatal());
    assert_ne!(tls.peek_error(), 0);
    Ok((connection, wire))
}

#[test]
fn connections_that_are_kept_are_not_blamed_on_thread_states() -> Outcome {
    on_each(&LINES, |tls| {
        let (server, client) = contexts(tls)?;
        assert!(Pair::new(&server, &client)?.handshake());
        let accept = || hygiene::run("accept", || refused(tls, &server));
        drop(accept()?);

        // Freed at once: nothing grows, and nothing is said.
        let probe = Probe::new();
        for _ in 0..200 {
            drop(accept()?);
        }
        let snapshot = probe.snapshot();
        assert_eq!(snapshot.findings_of(Kind::NotThreadState).count(), 0);
        assert_eq!(snapshot.libraries[0].growth.live_blocks, Some(0));

        let probe = Probe::new();
        let mut kept = Vec::new();
        for _ in 0..200 {
            kept.push(accept()?);
        }
        let snapshot = probe.snapshot();
        let growth = &snapshot.libraries[0].growth;
        assert_eq!(growth.thread_states, Some(0));
        assert!(growth.live_bytes.is_some_and(|bytes| bytes > 1 << 20), "{growth:?}");
        let found: Vec<_> = snapshot.findings_of(Kind::NotThreadState).collect();
        assert_eq!(found.len(), 1, "{:#?}", snapshot.findings);
        println!("measured: {}", found[0]);
        for words in
            ["Not thread state", "thread states flat", "per 1,000 tasks", &growth.files[0].file]
        {
            assert!(found[0].text.contains(words), "{words}: {}", found[0]);
        }
        assert!(found[0].next_step.contains("not freed"), "{}", found[0]);
        assert_eq!(snapshot.findings_of(Kind::StatesOfEndedThreads).count(), 0);
        assert_eq!(snapshot.findings_of(Kind::DirtyTasks).count(), 1);

        drop(kept);
        // A context of 1.0.2 keeps up to 32 buffers for reading and as many for writing.
        let kept = if tls.library().shares_states() { 64 } else { 0 };
        let blocks = probe.snapshot().libraries[0].growth.live_blocks.ok_or("memory is counted")?;
        assert!((0..=kept).contains(&blocks), "{blocks}");
        Ok(())
    })
}
