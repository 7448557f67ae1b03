//! Holds the sources to what `docs/design.md` says: who may use whom, where `unsafe` may live, and
//! how long a file may be.
//!
//! The arrows and the places of `unsafe` are read from the page, so the page and this test cannot
//! drift apart. Only what ships is looked at, `src/`, `cli/src/`, `libssl/src/`, `tcnative/src/` and `examples/`,
//! and `java/` for `unsafe`;
//! tests and benches may use everything. Paths are followed as they are written (`crate::room`,
//! `sslsweep::room`, `super::room`, grouped or not), not resolved as the compiler does: a macro of
//! another room that expands to a path is not seen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[path = "arrows/page.rs"]
mod page;
#[path = "arrows/source.rs"]
mod source;

use page::Page;
use source::Source;

/// Files of the shipped sources must stay below this.
const LINES: usize = 600;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below `folder`, as a path relative to the root of the repository.
fn rust_files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries {
            let path = entry.expect("a folder of the repository can be listed").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path.strip_prefix(root()).expect("below the root").to_owned());
            }
        }
    }
    found.sort();
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(root().join(path))
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// What the root of the shim re-exports: name to room, and the rooms re-exported with a `*`.
struct Reexports {
    names: BTreeMap<String, String>,
    globs: Vec<String>,
}

impl Reexports {
    fn read(lib: &Source, page: &Page) -> Self {
        let mut reexports = Self { names: BTreeMap::new(), globs: Vec::new() };
        for (room, name) in lib.public_uses() {
            if page.arrows.contains_key(&room) {
                if name == "*" {
                    reexports.globs.push(room);
                } else {
                    reexports.names.insert(name, room);
                }
            }
        }
        reexports
    }
}

/// The room a file belongs to; `None` for the root of the shim, which only joins the rooms.
fn room_of(path: &Path) -> Option<String> {
    let mut parts = path.iter().map(|part| part.to_string_lossy());
    match parts.next()?.as_ref() {
        "src" => {
            let name = parts.next()?;
            let name = name.strip_suffix(".rs").unwrap_or(&name);
            (name != "lib").then(|| name.to_owned())
        }
        member => Some(member.to_owned()),
    }
}

/// What is wrong with the imports of one file, a sentence each.
fn misdirected(path: &Path, source: &Source, page: &Page, reexports: &Reexports) -> Vec<String> {
    let Some(room) = room_of(path) else { return Vec::new() };
    let Some(allowed) = page.arrows.get(&room) else {
        return vec![format!("{}: docs/design.md has no arrow for `{room}`", path.display())];
    };
    let mut wrong = Vec::new();
    for used in source.paths() {
        // The shim's own name, or `crate` inside the shim, leads to a room.
        let in_shim = path.starts_with("src");
        let target = match used.root.as_str() {
            "crate" if !in_shim => continue,
            "crate" | "sslsweep" => match page.arrows.contains_key(&used.first) {
                true => used.first.clone(),
                false => match (reexports.names.get(&used.first), reexports.globs.first()) {
                    (Some(room), _) | (None, Some(room)) => room.clone(),
                    (None, None) => format!("the root's {}", used.first),
                },
            },
            "super" if in_shim && page.arrows.contains_key(&used.first) => used.first.clone(),
            "super" => continue,
            "sslsweep_libssl" => "libssl".to_owned(),
            other if page.outside.contains(other) => other.to_owned(),
            _ => continue,
        };
        if target != room && !allowed.contains(&target) {
            wrong.push(format!(
                "{}:{}: `{room}` uses `{target}` ({}::{}), and docs/design.md has no such arrow",
                path.display(),
                used.line,
                used.root,
                used.first,
            ));
        }
    }
    wrong
}

/// Lines with the keyword `unsafe` in a file that is not in one of the page's folders for it.
fn misplaced_unsafe(path: &Path, source: &Source, page: &Page) -> Vec<String> {
    if page.unsafe_folders.iter().any(|folder| path.starts_with(folder)) {
        return Vec::new();
    }
    let at = source.words().filter(|(_, word)| *word == "unsafe");
    at.map(|(line, _)| format!("{}:{line}: `unsafe` outside its places", path.display())).collect()
}

fn too_long(path: &Path, text: &str) -> Option<String> {
    let lines = text.lines().count();
    (lines >= LINES).then(|| format!("{}: {lines} lines, must be under {LINES}", path.display()))
}

fn page() -> Page {
    Page::read(&read(Path::new("docs/design.md")))
}

fn reexports(page: &Page) -> Reexports {
    Reexports::read(&Source::read(&read(Path::new("src/lib.rs"))), page)
}

#[test]
fn imports_follow_the_arrows() {
    let page = page();
    let reexports = reexports(&page);
    let files = ["src", "cli/src", "libssl/src", "tcnative/src"].into_iter().flat_map(rust_files);
    let wrong: Vec<String> = files
        .flat_map(|path| misdirected(&path, &Source::read(&read(&path)), &page, &reexports))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn page_and_folders_name_the_same_rooms() {
    let page = page();
    let mut folders: BTreeSet<String> = ["src", "cli/src", "libssl/src", "tcnative/src"]
        .into_iter()
        .flat_map(rust_files)
        .filter_map(|path| room_of(&path))
        .collect();
    let rooms: BTreeSet<String> = page.arrows.keys().cloned().collect();
    folders.remove("main");
    assert_eq!(rooms, folders, "left: docs/design.md; right: the folders with sources");
}

#[test]
fn nothing_points_back() {
    // Rooms that only use settled rooms are settled; with a circle some room never is.
    let page = page();
    let mut settled: BTreeSet<String> = page.outside.clone();
    let mut left: Vec<_> = page.arrows.iter().collect();
    loop {
        let before = left.len();
        left.retain(|(room, uses)| {
            let ready = uses.iter().all(|used| settled.contains(used));
            if ready {
                settled.insert((*room).clone());
            }
            !ready
        });
        if left.is_empty() {
            return;
        }
        assert!(left.len() < before, "these rooms of docs/design.md use each other: {left:?}");
    }
}

#[test]
fn unsafe_lives_in_its_places() {
    let page = page();
    let files = ["src", "cli/src", "libssl/src", "tcnative/src", "java", "examples"]
        .into_iter()
        .flat_map(rust_files);
    let wrong: Vec<String> = files
        .flat_map(|path| misplaced_unsafe(&path, &Source::read(&read(&path)), &page))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_rest_forbids_unsafe() {
    let page = page();
    for file in ["src/hygiene/mod.rs", "src/probe/mod.rs", "cli/src/main.rs"] {
        let file = Path::new(file);
        assert!(
            !page.unsafe_folders.iter().any(|folder| file.starts_with(folder)),
            "docs/design.md lets `unsafe` into {}",
            file.display()
        );
        let compact: String = Source::read(&read(file)).code().split_whitespace().collect();
        assert!(
            compact.contains("#![forbid(unsafe_code)]"),
            "{} lacks #![forbid(unsafe_code)]",
            file.display()
        );
    }
}

#[test]
fn files_stay_short() {
    let files = ["src", "cli", "libssl", "tcnative", "java"].into_iter().flat_map(rust_files);
    let wrong: Vec<String> = files.filter_map(|path| too_long(&path, &read(&path))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The control: a checker that finds nothing anywhere would pass every test above.
mod control {
    use super::*;

    fn complaints(path: &str, text: &str) -> Vec<String> {
        let page = Page::read(
            "## Who may use whom\n`cli -> probe, hygiene, libssl` · `libssl -> libcrypto, sys` ·\n\
             `probe -> hygiene, libcrypto, sys` · `hygiene -> libcrypto, sys` ·\n`libcrypto -> sys` · `sys -> libc`.\n\
             ## Next\n`unsafe` lives in `src/sys` and `libssl`; the rest forbids it.\n",
        );
        let lib = Source::read(
            "pub use hygiene::{Guard, policy::Policy as Rule};\npub use probe::Snapshot;",
        );
        let reexports = Reexports::read(&lib, &page);
        let (path, source) = (Path::new(path), Source::read(text));
        let mut wrong = misdirected(path, &source, &page, &reexports);
        wrong.extend(misplaced_unsafe(path, &source, &page));
        wrong.extend(too_long(path, text));
        wrong
    }

    #[track_caller]
    fn offends(path: &str, text: &str, expected: &str) {
        let found = complaints(path, text);
        assert!(
            found.len() == 1 && found[0].contains(expected),
            "{path}: {text}\nexpected one complaint with: {expected}\nfound: {found:#?}"
        );
    }

    #[track_caller]
    fn passes(path: &str, text: &str) {
        assert_eq!(complaints(path, text), Vec::<String>::new(), "{path}: {text}");
    }

    #[test]
    fn a_path_against_the_arrows_is_reported() {
        offends("src/sys/thread.rs", "\nuse crate::hygiene::Guard;", ":2: `sys` uses `hygiene`");
        offends("src/libcrypto/mod.rs", "fn f() { crate::probe::look() }", "uses `probe`");
        offends(
            "src/libcrypto/mod.rs",
            "fn f() { :: sslsweep :: probe :: look() }",
            "uses `probe`",
        );
        offends("src/libcrypto/mod.rs", "use super::super::hygiene::Guard;", "uses `hygiene`");
        offends("src/libcrypto.rs", "use crate::Guard;", "uses `hygiene`");
        offends("libssl/src/lib.rs", "pub use sslsweep::{sys::dl, Rule};", "uses `hygiene`");
        offends("libssl/src/lib.rs", "use sslsweep::Snapshot as S;", "uses `probe`");
        offends(
            "cli/src/main.rs",
            "use sslsweep::{\n  probe::Probe,\n  sys::{self, dl},\n};",
            ":3: `cli` uses `sys`",
        );
        offends("src/probe/mod.rs", "use sslsweep_libssl::Library;", "uses `libssl`");
        offends("src/probe/mod.rs", "let x = libc::getpid();", "uses `libc`");
        offends("src/probe/mod.rs", "use libc as c;", "uses `libc`");
        offends("src/probe/mod.rs", "use crate::Unheard;", "the root's Unheard");
        offends("src/cellar/mod.rs", "", "no arrow for `cellar`");
    }

    #[test]
    fn a_path_along_the_arrows_passes() {
        passes("src/sys/thread.rs", "use libc::c_int; use super::dl; use std::sync::Arc;");
        passes("src/hygiene/mod.rs", "use crate::{libcrypto::{self, Line}, sys::thread::id};");
        passes(
            "cli/src/main.rs",
            "use crate::sys; use sslsweep::{Guard, probe}; use sslsweep_libssl::Tls;",
        );
        passes("libssl/src/lib.rs", "use crate::probe; fn f(x: my::libc::T) {}");
        passes("src/lib.rs", "pub use crate::probe::Probe;");
        passes(
            "src/sys/mod.rs",
            "//! crate::probe\n/* crate::probe /* nested */ crate::probe */\nconst S: &str = \"crate::probe \\\" crate::probe\";\n\
             const R: &str = r#\"crate::probe \" crate::probe\"#; const C: char = '\"'; fn f<'a>(x: &'a str) {} // crate::probe",
        );
        offends(
            "src/sys/mod.rs",
            "const C: char = '\"'; fn f<'a>() { let q = b'\\''; crate::probe::look() } const D: char = '\"';",
            "uses `probe`",
        );
    }

    #[test]
    fn unsafe_in_the_wrong_place_is_reported() {
        offends(
            "src/hygiene/mod.rs",
            "fn f() {\n unsafe { g() } }",
            "src/hygiene/mod.rs:2: `unsafe`",
        );
        passes(
            "src/hygiene/mod.rs",
            "#![forbid(unsafe_code)] // unsafe\nconst S: &str = \"unsafe\";",
        );
        passes("libssl/src/lib.rs", "unsafe fn f() {}");
    }

    #[test]
    fn a_long_file_is_reported() {
        offends("src/sys/mod.rs", &"\n".repeat(600), "600 lines");
        passes("src/sys/mod.rs", &"\n".repeat(599));
    }
}
