//! Holds the shared object to its list of dynamic symbols, `exports/libsslsweep.txt`, and to what it
//! must not have: natives of Tomcat, symbols of OpenSSL, a need for OpenSSL, an end to its life. Its natives
//! are those that the classes of the jar declare.
//!
//! After a deliberate change: `SSLSWEEP_BLESS=1 cargo test --test exports` writes the list.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use object::elf::{DF_1_NODELETE, DT_FLAGS_1, DT_NEEDED, FileHeader64};
use object::read::elf::ElfFile;
use object::{Endianness, Object, ObjectSymbol};
use sslsweep_libssl::lines;

type Elf<'data> = ElfFile<'data, FileHeader64<Endianness>>;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The shared object of the profile that this test was built in.
///
/// cargo builds the library in all its forms before it builds this test, and puts the shared object
/// beside it.
fn shim() -> PathBuf {
    let test = std::env::current_exe().expect("a running test has a path");
    let path = test.with_file_name("libsslsweep.so");
    assert!(path.exists(), "cargo should have built {} for this test", path.display());
    path
}

/// What a shared object says of itself to the dynamic linker.
struct Shared {
    exports: BTreeSet<String>,
    needed: BTreeSet<String>,
    nodelete: bool,
}

impl Shared {
    fn read(path: &Path) -> Self {
        let data = fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let elf = Elf::parse(&*data).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let exports = elf
            .dynamic_symbols()
            .filter(|symbol| symbol.is_definition() && !symbol.is_local())
            .map(|symbol| symbol.name().expect("a symbol has a name").to_owned())
            .filter(|name| !name.is_empty())
            .collect();

        let table = elf.elf_dynamic_table().expect("a dynamic table");
        let (mut needed, mut nodelete) = (BTreeSet::new(), false);
        for entry in &table {
            if entry.tag == DT_NEEDED {
                let name = table.string(entry).expect("the name of a library");
                needed.insert(String::from_utf8_lossy(name).into_owned());
            }
            if entry.tag == DT_FLAGS_1 {
                nodelete = entry.val & DF_1_NODELETE.0 != 0;
            }
        }
        Self { exports, needed, nodelete }
    }

    /// What this object has and the shim must not have, given the symbols of OpenSSL.
    fn offences(&self, openssl: &BTreeSet<String>) -> Vec<String> {
        let natives =
            self.exports.iter().filter(|name| name.starts_with("Java_org_apache_tomcat_jni_"));
        let taken = self.exports.intersection(openssl);
        let needed = self
            .needed
            .iter()
            .filter(|name| name.starts_with("libssl") || name.starts_with("libcrypto"));
        let mut found: Vec<String> =
            natives.map(|name| format!("native of Tomcat: {name}")).collect();
        found.extend(taken.map(|name| format!("symbol of OpenSSL: {name}")));
        found.extend(needed.map(|name| format!("needs {name}")));
        if !self.nodelete {
            found.push("can be unmapped by dlclose".to_owned());
        }
        found
    }
}

/// Every libcrypto and libssl that `make setup` installed.
fn libraries() -> Vec<PathBuf> {
    let lines = lines().unwrap_or_else(|error| panic!("{error}"));
    lines.into_iter().flat_map(|line| [line.libcrypto, line.libssl]).collect()
}

fn symbols_of_openssl() -> BTreeSet<String> {
    libraries().iter().flat_map(|file| Shared::read(file).exports).collect()
}

#[test]
fn exports_equal_the_list() {
    let list = root().join("exports/libsslsweep.txt");
    let found: String =
        Shared::read(&shim()).exports.iter().map(|name| format!("{name}\n")).collect();
    if std::env::var_os("SSLSWEEP_BLESS").is_some() {
        fs::write(&list, &found).expect("the list can be written");
    }
    let expected = fs::read_to_string(&list).expect("the list can be read");
    assert_eq!(
        found.lines().collect::<Vec<_>>(),
        expected.lines().collect::<Vec<_>>(),
        "left: libsslsweep.so; right: exports/libsslsweep.txt"
    );
}

/// The natives that the .java files of a folder declare, as the JVM looks for them.
///
/// Read line by line: each is declared on one, as `static native TYPE NAME(`.
fn declared_natives(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for file in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
    {
        let path = file.expect("an entry of a folder").path();
        if path.is_dir() {
            found.extend(declared_natives(&path));
        } else if path.extension().is_some_and(|extension| extension == "java") {
            let source = fs::read_to_string(&path).expect("a source");
            let package = source
                .lines()
                .find_map(|line| line.strip_prefix("package ")?.strip_suffix(';'))
                .expect("a package");
            let class = path.file_stem().expect("a name").to_string_lossy();
            found.extend(natives_of(&source).map(|name| {
                let name = format!("{package}.{class}.{name}");
                format!("Java_{}", name.replace('_', "_1").replace('.', "_"))
            }));
        }
    }
    found
}

/// Names of the methods that a source declares as native.
fn natives_of(source: &str) -> impl Iterator<Item = &str> {
    source.lines().filter_map(|line| {
        let line = line.trim_start();
        let (before, _) = line.split_once('(')?;
        let is_native = before.split_whitespace().any(|word| word == "native");
        (is_native && !line.starts_with(['*', '/'])).then_some(before.rsplit(' ').next()?)
    })
}

#[test]
fn natives_are_those_that_the_jar_declares() {
    let declared = declared_natives(&root().join("java/sslsweep/src/main/java"));
    assert!(declared.contains("Java_org_sslsweep_Natives_enter"), "{declared:?}");
    let exported: BTreeSet<_> = Shared::read(&shim())
        .exports
        .into_iter()
        .filter(|name| name.starts_with("Java_"))
        .collect();
    assert_eq!(exported, declared, "left: libsslsweep.so; right: the classes of java/sslsweep");
}

/// The control: what the test above would read in a source.
#[test]
fn natives_are_found_in_a_source() {
    let source = "    /** A native method (static). */\n\
                  \x20    * native talk(\n\
                  \x20   static native long enter(int label);\n\
                  \x20   private static native String[] most_left(int most);\n\
                  \x20   static long notNative(int a) { return nativeCall(a); }\n";
    assert_eq!(natives_of(source).collect::<Vec<_>>(), ["enter", "most_left"]);
}

#[test]
fn has_nothing_of_others() {
    let offences = Shared::read(&shim()).offences(&symbols_of_openssl());
    assert!(offences.is_empty(), "{}", offences.join("\n"));
}

/// The control: the same check, on objects that have what the shim must not have.
#[test]
fn offenders_are_reported() {
    let openssl = symbols_of_openssl();
    for symbol in
        ["ERR_clear_error", "ERR_remove_thread_state", "SSL_get_error", "OPENSSL_thread_stop"]
    {
        assert!(openssl.contains(symbol), "{symbol} is in none of {:?}", libraries());
    }
    let mut needing = 0;
    for file in libraries() {
        let library = Shared::read(&file);
        let offences = library.offences(&openssl);
        assert!(
            offences.iter().filter(|offence| offence.starts_with("symbol of OpenSSL")).count()
                > 100,
            "{}: {offences:?}",
            file.display()
        );
        needing +=
            usize::from(offences.iter().any(|offence| offence.starts_with("needs libcrypto")));
    }
    assert!(needing >= 1, "no libssl was found to need its libcrypto");

    let folder = std::env::temp_dir().join(format!("sslsweep-exports-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a temporary folder");
    let (source, object) = (folder.join("native.c"), folder.join("native.so"));
    fs::write(&source, "int Java_org_apache_tomcat_jni_SSL_version(void) { return 0; }\n")
        .expect("a source");
    let compiled = Command::new("cc").arg("-shared").arg("-o").args([&object, &source]).status();
    assert!(compiled.expect("cc runs").success(), "cc failed");
    let offences = Shared::read(&object).offences(&openssl);
    fs::remove_dir_all(&folder).expect("the temporary folder goes");
    assert_eq!(
        offences,
        ["native of Tomcat: Java_org_apache_tomcat_jni_SSL_version", "can be unmapped by dlclose"]
    );
}
