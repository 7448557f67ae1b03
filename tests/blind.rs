//! What files hold of OpenSSL, and what of it this process cannot sweep.

// A helper that unwraps fails the test at the place, as the tests themselves do.
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use sslsweep::libcrypto::inspect::{Facts, Hidden, inspect};
use sslsweep::libcrypto::{BlindReason, Line, blind_spots, libraries, locking};
use sslsweep::sys::dl::Handle;
use sslsweep::sys::elf::Elf;
use sslsweep::sys::objects;
use sslsweep_libssl::{LineFiles, hidden, lines};

fn libcrypto(name: &str) -> PathBuf {
    LineFiles::named(name).unwrap_or_else(|error| panic!("{error}")).libcrypto
}

fn facts(path: &Path) -> Facts {
    inspect(&Elf::open(path).unwrap()).unwrap_or_else(|error| panic!("{error}"))
}

/// Loads a library and, before it, what it needs from its own folder, for the life of the process.
fn load(path: &Path) {
    for needed in Elf::open(path).unwrap().needed() {
        let sibling = path.with_file_name(needed);
        if sibling.exists() {
            load(&sibling);
        }
    }
    // SAFETY: a library of the manifest, which the test trusts; its initialisers have no conditions.
    let handle = unsafe { Handle::load(path) };
    handle.unwrap_or_else(|error| panic!("{}: {error}", path.display())).pin();
}

#[test]
fn each_libcrypto_tells_its_version_and_each_libssl_is_a_user() {
    let lines = lines().unwrap_or_else(|error| panic!("{error}"));
    for line in &lines {
        let library = facts(&line.libcrypto);
        assert!(library.provides && library.hidden.is_none(), "{line:?}: {library:?}");
        let version = library.version_text.unwrap();
        assert!(version.contains(&format!(" {}", line.version)), "{version}: {line:?}");
        assert_eq!(library.line, Some(Line::from_version_text(&version)));
        assert_ne!(library.line, Some(Line::Unknown), "{version}");

        let user = facts(&line.libssl);
        assert!(user.imports && !user.provides && user.hidden.is_none(), "{line:?}: {user:?}");
    }
    assert!(lines.len() >= 3, "run `make setup`: {lines:?}");
}

#[test]
fn files_without_openssl_have_nothing_of_it() {
    // The shim names what it looks for, and so does this test; neither has it inside.
    let test = std::env::current_exe().unwrap();
    let shim = test.with_file_name("libsslsweep.so");
    for path in [&test, &shim, Path::new("/bin/sh")] {
        let facts = facts(path);
        assert!(!facts.provides && !facts.imports && facts.hidden.is_none(), "{path:?}: {facts:?}");
    }
}

#[test]
fn calls_under_other_names_are_told_by_the_symbol() {
    // A libcrypto whose exported names all got a prefix, as aws-lc-sys builds it: the names are
    // in the table of names, where ERR_clear_error can be renamed to one of the same length.
    let library = libcrypto("3.0");
    let mut bytes = fs::read(&library).unwrap();
    for (name, renamed) in [
        (&b"\0ERR_clear_error\0"[..], &b"\0v_ERR_clear_error"[..]),
        (&b"\0ERR_peek_error\0"[..], &b"\0v_ERR_peek_error"[..]),
    ] {
        let at = bytes.windows(name.len()).position(|window| window == name).unwrap();
        // The name grows into its neighbour, whose own name is lost.
        bytes[at..at + renamed.len()].copy_from_slice(renamed);
        bytes[at + renamed.len()] = 0;
    }
    let path = std::env::temp_dir().join(format!("sslsweep-prefixed-{}.so", std::process::id()));
    fs::write(&path, &bytes).unwrap();
    let facts = facts(&path);
    fs::remove_file(&path).unwrap();
    assert!(!facts.provides);
    assert_eq!(facts.hidden, Some(Hidden::Prefixed { symbol: "v_ERR_clear_error".to_owned() }));
    assert_eq!(facts.line, Some(Line::V3));
}

/// One test, since it is about the one list of this process.
#[test]
fn what_is_bound_is_no_blind_spot_and_what_is_hidden_is_one() {
    let clean = blind_spots().unwrap();
    assert!(clean.is_empty(), "{clean:?}");

    load(&libcrypto("1.0.2"));
    // Without locks it may not be touched, and is named as out of reach.
    assert!(matches!(&blind_spots().unwrap()[..], [spot] if spot.to_string().contains("locks")));
    let old = objects::loaded().into_iter().find(|object| object.path == libcrypto("1.0.2"));
    locking::install(old.unwrap().segments[0].start).unwrap_or_else(|error| panic!("{error}"));
    load(&libcrypto("3.0"));
    assert_eq!(blind_spots().unwrap(), []);
    assert_eq!(libraries().len(), 2);

    let hidden = hidden().unwrap_or_else(|error| panic!("{error}")).object;
    load(&hidden);
    let spots = blind_spots().unwrap();
    assert_eq!(spots.len(), 1, "{spots:?}");
    let spot = &spots[0];
    assert_eq!(spot.path, hidden);
    assert_eq!(spot.line, Some(Line::V3));
    assert_eq!(spot.reason, BlindReason::Hidden { tls: true });
    assert_eq!(
        spot.to_string(),
        format!(
            "{}: {} is linked in and keeps its symbols to itself: its error queues cannot be swept",
            hidden.display(),
            spot.version.as_ref().unwrap()
        )
    );
    let json = serde_json::to_value(spot).unwrap();
    assert_eq!(json["tls"], true);
    assert_eq!((&json["reason"], &json["line"]), (&"hidden".into(), &"3.x".into()));
    assert_eq!(blind_spots().unwrap(), spots, "a second look finds the same");

    // A library whose file is deleted after it was loaded is swept all the same.
    let copy = std::env::temp_dir().join(format!("sslsweep-deleted-{}.so", std::process::id()));
    fs::copy(libcrypto("1.1.1"), &copy).unwrap();
    for needed in Elf::open(&libcrypto("1.1.1")).unwrap().needed() {
        let sibling = libcrypto("1.1.1").with_file_name(needed);
        if sibling.exists() {
            load(&sibling);
        }
    }
    load(&copy);
    fs::remove_file(&copy).unwrap();
    assert_eq!(blind_spots().unwrap(), spots);
    assert_eq!(libraries().len(), 3);
}
