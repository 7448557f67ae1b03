//! Case 27: making and releasing contexts or digests leaks until the process is killed, because a
//! binding forgets to free one of them.

use sslsweep::hygiene;
use sslsweep::probe::{Kind, LibraryGrowth, Memory, Probe};
use sslsweep_libssl::{Context, Tls, exercise};

use crate::common::{LINES, Outcome, on_each};

const OPERATIONS: u32 = 1000;

/// What a number of tasks add to the library's memory.
fn growth(task: &'static str, work: impl Fn() -> Outcome) -> Outcome<(LibraryGrowth, Probe)> {
    hygiene::run(task, &work)?;
    let probe = Probe::new();
    for _ in 0..OPERATIONS {
        hygiene::run(task, &work)?;
    }
    let snapshot = probe.snapshot();
    assert_eq!(snapshot.growth.tasks, u64::from(OPERATIONS));
    Ok((snapshot.libraries[0].growth.clone(), probe))
}

fn digest(tls: &'static Tls) -> Outcome<exercise::Digest> {
    exercise::Digest::new(tls).ok_or_else(|| "no digest".into())
}

#[test]
fn the_slope_of_live_blocks_tells_who_forgets_to_free() -> Outcome {
    on_each(&LINES, |tls| {
        let (growth_of_freed, _) = growth("context", || {
            drop(Context::client(tls)?.build());
            drop(digest(tls)?);
            Ok(())
        })?;
        assert_eq!(growth_of_freed.live_blocks_per_1000_tasks, Some(0.0));
        assert_eq!(growth_of_freed.live_bytes_per_1000_tasks, Some(0.0));

        let classes = |probe: &Probe| match &probe.snapshot().libraries[0].memory {
            Memory::Counted { sizes, .. } => sizes.clone(),
            other => panic!("{other:?}"),
        };
        let before = classes(&Probe::new());
        let (leaked, probe) = growth("digest", || {
            std::mem::forget(digest(tls)?);
            Ok(())
        })?;
        let slope = leaked.live_blocks_per_1000_tasks.ok_or("a slope")?;
        println!(
            "measured: {slope} blocks, {:?} bytes per 1,000 digests forgotten",
            leaked.live_bytes_per_1000_tasks
        );
        assert!(slope >= 1000.0, "{leaked:?}");
        // A class of sizes has those blocks.
        let risen = classes(&probe).into_iter().filter(|class| {
            let then = before.iter().find(|then| then.up_to == class.up_to);
            class.blocks >= then.map_or(0, |then| then.blocks) + u64::from(OPERATIONS)
        });
        assert!(risen.count() >= 1);

        let (leaked, probe) = growth("context", || {
            std::mem::forget(Context::client(tls)?.build());
            Ok(())
        })?;
        println!(
            "measured: {:?} blocks, {:?} bytes per 1,000 contexts forgotten",
            leaked.live_blocks_per_1000_tasks, leaked.live_bytes_per_1000_tasks
        );
        let snapshot = probe.snapshot();
        let found: Vec<_> = snapshot.findings_of(Kind::NotThreadState).collect();
        assert_eq!(found.len(), 1, "{leaked:?}");
        println!("measured: {}", found[0]);
        assert!(found[0].text.contains("thread states flat"), "{}", found[0]);
        Ok(())
    })
}
