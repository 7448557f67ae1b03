//! Two and more libcryptos in one process: each swept, each counted apart.

use sslsweep::hygiene::{Guard, Policy, Task, ledger, run};
use sslsweep_libssl::{LineFiles, Outcome as Class, Tls, faults};

use crate::common::{Idle, Outcome};

fn load(names: &[&str]) -> Outcome<Vec<&'static Tls>> {
    names.iter().map(|name| Ok(LineFiles::named(name)?.load()?)).collect()
}

/// One error in the first library, two in the second, and so on.
fn leave(libraries: &[&'static Tls]) {
    for (count, tls) in (1..).zip(libraries) {
        (0..count).for_each(|_| faults::pem_junk(tls));
    }
}

fn depths(libraries: &[&'static Tls]) -> Vec<usize> {
    libraries.iter().map(|tls| tls.library().depth()).collect()
}

fn check(names: &[&str]) -> Outcome {
    let libraries = load(names)?;
    assert_eq!(sslsweep::libcrypto::bound().len(), libraries.len());

    leave(&libraries);
    let mut idle: Vec<Idle> = libraries.iter().map(|tls| Idle::new(tls)).collect::<Outcome<_>>()?;
    // Making the connections has cleared the queues; see CASES.md, 11.
    leave(&libraries);
    for idle in &mut idle {
        assert_eq!(idle.read(), idle.misread(Class::Ssl));
    }
    libraries.iter().for_each(|tls| tls.clear_errors());

    run("all", || leave(&libraries));
    assert!(depths(&libraries).iter().all(|depth| *depth == 0));
    for idle in &mut idle {
        assert_eq!(run("read", || idle.read()), Class::WantRead);
    }
    for (tls, label) in libraries.iter().zip(["one", "two", "three", "four", "five"]) {
        run(label, || faults::pem_junk(tls));
    }

    let figures = ledger();
    let all = figures.label("all").ok_or("no task")?;
    let left: usize = (1..=libraries.len()).sum();
    assert_eq!((all.tasks, all.dirty_tasks, all.leftovers), (1, 1, left as u64));
    assert_eq!(all.entries.len(), libraries.len(), "one kind in each library");
    for ((count, tls), label) in (1..).zip(&libraries).zip(["one", "two", "three", "four", "five"])
    {
        let path = tls.libcrypto().display().to_string();
        let of = |label| {
            let entries = &figures.label(label)?.entries;
            entries.iter().find(|entry| entry.library == path).map(|entry| entry.leftovers)
        };
        assert_eq!((of("all"), of(label)), (Some(count), Some(1)), "{path}");
        assert_eq!(figures.label(label).map(|figures| figures.entries.len()), Some(1));
    }
    assert_eq!(figures.label("read").map(|figures| figures.dirty_tasks), Some(0));

    // An inner guard keeps what the caller has, in each of them.
    let own = |tls: &Tls| tls.library().raise(128, 1, c"caller", 1);
    let known = |tls: &&&Tls| !tls.version().starts_with("AWS-LC");
    let readable: Vec<&'static Tls> = libraries.iter().filter(known).copied().collect();
    let outer = Guard::enter("outer");
    assert!(readable.iter().all(|tls| own(tls)));
    run(Task::new("inner").policy(Policy::RollBack), || leave(&readable));
    assert!(depths(&readable).iter().all(|depth| *depth == 1));
    drop(outer);
    let left: usize = (1..=readable.len()).sum();
    let figures = ledger();
    assert_eq!(figures.label("inner").map(|figures| figures.leftovers), Some(left as u64));
    assert_eq!(
        figures.label("outer").map(|figures| figures.leftovers),
        Some(readable.len() as u64)
    );
    assert!(depths(&libraries).iter().all(|depth| *depth == 0));
    Ok(())
}

crate::alone! {
    fn two_with_threads_of_their_own_kind() { check(&["1.1.1", "3.0"]) }
    fn two_one_of_them_with_a_shared_table() { check(&["1.0.2", "3.0"]) }
    fn three() { check(&["1.0.2", "1.1.1", "3.0"]) }
    fn five() { check(&["1.0.2", "1.1.1", "3.6", "4.0", "aws-lc"]) }
}
