//! What a reader of ELF files meets: good files, files that are something else, and damaged ones.

// A helper that unwraps fails the test at the place, as the tests themselves do.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use sslsweep::sys::elf::{Class, Elf, ElfError, Kind, Machine};
use sslsweep::sys::objects;

/// A folder that goes with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("sslsweep-elf-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, bytes).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn c_library() -> PathBuf {
    let objects = objects::loaded();
    let is_it = |path: &Path| path.file_name().is_some_and(|name| name == "libc.so.6");
    objects
        .into_iter()
        .map(|object| object.path)
        .find(|path| is_it(path))
        .expect("libc.so.6 is loaded")
}

/// Everything a user of the reader can ask for.
fn use_everything(elf: &Elf) -> usize {
    let mut bytes = 0;
    let _ = elf.scan(128, |piece| {
        bytes += piece.bytes.len();
        true
    });
    let _ = elf.check_loadable();
    bytes + elf.defined().count() + elf.imported().count() + elf.needed().len()
}

#[test]
fn a_library_names_what_it_defines_and_what_it_wants() {
    let elf = Elf::open(&c_library()).unwrap();
    assert_eq!(elf.class(), Class::Bits64);
    assert_eq!(elf.kind(), Kind::Shared);
    assert_eq!(Some(elf.machine()), Machine::host());
    assert_eq!(elf.soname(), Some("libc.so.6"));
    assert!(elf.needed().iter().any(|name| name.starts_with("ld-linux")), "{:?}", elf.needed());
    assert!(elf.defines("pthread_create"));
    assert!(!elf.defines("pthread_creat"));
    assert!(elf.imported().any(|name| name == b"__tls_get_addr"));
    elf.check_loadable().unwrap();

    let program = Elf::open(&std::env::current_exe().unwrap()).unwrap();
    assert!(program.imported().any(|name| name == b"dl_iterate_phdr"));
    assert!(!program.defines("dl_iterate_phdr"));
}

#[test]
fn a_text_is_found_in_the_read_only_data_and_only_there() {
    // In the read-only data of this test, and so of the program that runs it.
    const TEXT: &str = "a needle that nothing else has, 71f3";
    let elf = Elf::open(&std::env::current_exe().unwrap()).unwrap();
    let holds = |elf: &Elf| {
        let mut found = false;
        elf.scan(128, |piece| {
            found = piece.bytes.windows(TEXT.len()).any(|window| window == TEXT.as_bytes());
            !found
        })
        .unwrap();
        found
    };
    assert!(holds(&elf));
    assert!(!holds(&Elf::open(&c_library()).unwrap()));
}

#[test]
fn a_file_without_section_headers_is_read_as_the_linker_reads_it() {
    let folder = Folder::new("sections");
    let mut bytes = fs::read(c_library()).unwrap();
    bytes[0x28..0x30].fill(0); // e_shoff
    bytes[0x3c..0x40].fill(0); // e_shnum, e_shstrndx
    let without = Elf::open(&folder.file("libc.so.6", &bytes)).unwrap();
    let with = Elf::open(&c_library()).unwrap();
    assert_eq!(without.defined().count(), with.defined().count());
    assert_eq!(without.imported().count(), with.imported().count());
    assert!(use_everything(&without) > 0);
}

#[test]
fn each_wrong_file_is_refused_with_what_to_do() {
    let folder = Folder::new("wrong");
    let library = fs::read(c_library()).unwrap();
    let said =
        |path: &Path| Elf::open(path).and_then(|elf| elf.check_loadable()).unwrap_err().to_string();

    let missing = folder.0.join("missing.so");
    assert_eq!(said(&missing), format!("{}: no such file; check the path", missing.display()));
    assert!(said(&folder.file("through.so", b"").join("libssl.so")).contains("no such file"));
    assert!(said(&folder.0).contains("not a regular file"));
    let pipe = folder.0.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(said(&pipe).contains("not a regular file"));
    assert!(said(Path::new("/dev/null")).contains("not a regular file"));
    let circle = folder.0.join("circle");
    symlink(&circle, &circle).unwrap();
    assert!(said(&circle).contains("cannot be read"), "{}", said(&circle));

    assert!(said(&folder.file("empty.so", b"")).contains("not an ELF file"));
    assert!(
        said(&folder.file("script.so", b"/* GNU ld script */ GROUP(libc.so.6)"))
            .contains("linker script")
    );
    assert!(said(&folder.file("short.so", &library[..40])).contains("truncated"));
    assert!(said(&folder.file("half.so", &library[..library.len() / 2])).contains("truncated"));

    let mut other = library.clone();
    other[18] = 243; // RISC-V
    assert!(
        said(&folder.file("riscv.so", &other)).contains("built for RISC-V, and this machine is")
    );
    let mut program = library.clone();
    program[16] = 2; // ET_EXEC
    assert!(said(&folder.file("program", &program)).contains("a program, not a shared library"));
}

#[test]
fn a_32_bit_library_is_read_and_said_to_be_unloadable() {
    let folder = Folder::new("bits");
    // The smallest 32-bit shared object: a file header and no segment.
    let mut bytes = vec![0; 52];
    bytes[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
    bytes[16] = 3; // ET_DYN
    bytes[18] = 3; // EM_386
    bytes[20] = 1;
    bytes[40] = 52; // e_ehsize
    let elf = Elf::open(&folder.file("lib32.so", &bytes)).unwrap();
    assert_eq!(elf.class(), Class::Bits32);
    let error = elf.check_loadable().unwrap_err();
    assert!(matches!(error, ElfError::WrongClass { .. }));
    assert!(error.to_string().contains("a 32-bit object, and this is a 64-bit program"), "{error}");
}

#[test]
fn a_file_that_may_not_be_read_is_said_to_be_so() {
    let folder = Folder::new("permission");
    let path = folder.file("secret.so", &fs::read(c_library()).unwrap());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    match File::open(&path) {
        // Root reads everything: the message cannot be provoked from inside.
        Ok(_) => assert!(Elf::open(&path).is_ok()),
        Err(_) => assert!(matches!(Elf::open(&path), Err(ElfError::NoPermission { .. }))),
    }
}

#[test]
fn no_truncation_is_taken_for_a_whole_file() {
    let folder = Folder::new("truncated");
    let bytes = fs::read(c_library()).unwrap();
    let path = folder.file("libc.so.6", &bytes);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let loadable = (0..bytes.len()).rev().step_by(4093).chain((0..4096).rev().step_by(7));
    for length in loadable {
        file.set_len(length as u64).unwrap();
        match Elf::open(&path) {
            // Only section headers and a debugger's sections lie behind the last segment.
            Ok(elf) => {
                assert!(length * 20 > bytes.len() * 19 && use_everything(&elf) > 0, "{length}")
            }
            Err(ElfError::NotElf { .. }) => assert!(length < 4, "{length}"),
            Err(ElfError::Truncated { .. }) => {}
            Err(error) => panic!("{length} bytes: {error}"),
        }
    }
}

#[test]
fn no_damage_makes_the_reader_panic_or_hang() {
    let folder = Folder::new("damaged");
    let bytes = fs::read(c_library()).unwrap();
    let path = folder.file("libc.so.6", &bytes);
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        // xorshift64, Marsaglia 2003.
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let (mut read, mut refused) = (0, 0);
    for round in 0..3000 {
        // Headers most of the time, where a byte decides; then anywhere.
        let span = match round % 4 {
            0 => 64,
            1 => 1024,
            2 => 64 * 1024,
            _ => bytes.len() as u64,
        };
        let changes: Vec<_> =
            (0..1 + random() % 4).map(|_| (random() % span, random() as u8)).collect();
        for &(offset, byte) in &changes {
            file.write_all_at(&[byte], offset).unwrap();
        }
        match Elf::open(&path) {
            Ok(elf) => {
                read += 1;
                // Searching the data is what takes time; a sample will do.
                if round % 16 < 4 {
                    use_everything(&elf);
                } else {
                    let _ = elf.defined().count() + elf.imported().count();
                }
            }
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().is_empty());
            }
        }
        for &(offset, _) in &changes {
            file.write_all_at(&bytes[offset as usize..=offset as usize], offset).unwrap();
        }
    }
    assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
    assert_eq!(fs::read(&path).unwrap(), bytes);
}
