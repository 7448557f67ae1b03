//! Holds `libtcnative-2.so` to the natives that Tomcat's classes declare, `exports/libtcnative-2.txt`: those and no
//! other symbol. The list is that of the classes of Tomcat 10.1.60, `Library.has` and `Library.size` of Tomcat 9, and
//! `SSL.threadCleanup`; java/tomcat-tests compares it with the classes of real Tomcats.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use object::elf::{DF_1_NODELETE, DT_FLAGS_1, DT_NEEDED, DT_SONAME, FileHeader64};
use object::read::elf::ElfFile;
use object::{Endianness, Object, ObjectSymbol};

const PREFIX: &str = "Java_org_apache_tomcat_jni_";

/// The shared object of the profile that this test was built in, which cargo puts beside it.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    let path = test.with_file_name("libtcnative_2.so");
    assert!(path.exists(), "cargo should have built {} for this test", path.display());
    path
}

fn list() -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../exports/libtcnative-2.txt");
    let text =
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().map(str::to_owned).collect()
}

#[test]
fn it_exports_the_natives_of_tomcats_classes_and_nothing_else() {
    let data = fs::read(library()).expect("a readable library");
    let elf = ElfFile::<FileHeader64<Endianness>>::parse(&*data).expect("an ELF file");
    let exports: BTreeSet<String> = elf
        .dynamic_symbols()
        .filter(|symbol| symbol.is_definition() && !symbol.is_local())
        .map(|symbol| symbol.name().expect("a symbol has a name").to_owned())
        .collect();
    let list = list();
    assert_eq!(list.len(), 101);
    assert!(list.iter().all(|name| name.starts_with(PREFIX)));
    let missing: Vec<_> = list.difference(&exports).collect();
    let too_many: Vec<_> = exports.difference(&list).collect();
    assert!(
        missing.is_empty() && too_many.is_empty(),
        "missing: {missing:?}\ntoo many: {too_many:?}"
    );
}

#[test]
fn it_needs_openssl_has_tomcats_name_and_is_never_unmapped() {
    let data = fs::read(library()).expect("a readable library");
    let elf = ElfFile::<FileHeader64<Endianness>>::parse(&*data).expect("an ELF file");
    let table = elf.elf_dynamic_table().expect("a dynamic table");
    let (mut needed, mut name, mut nodelete) = (BTreeSet::new(), String::new(), false);
    for entry in &table {
        let text = || String::from_utf8_lossy(table.string(entry).expect("a name")).into_owned();
        match entry.tag {
            DT_NEEDED => drop(needed.insert(text())),
            DT_SONAME => name = text(),
            DT_FLAGS_1 => nodelete = entry.val & DF_1_NODELETE.0 != 0,
            _ => {}
        }
    }
    assert_eq!(name, "libtcnative-2.so");
    assert!(nodelete);
    for library in ["libssl.so.", "libcrypto.so."] {
        assert!(needed.iter().any(|needed| needed.starts_with(library)), "{library} {needed:?}");
    }
    assert!(!needed.iter().any(|needed| needed.contains("apr")), "{needed:?}");
}
