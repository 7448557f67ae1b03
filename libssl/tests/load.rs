//! What `Tls::load` says about files that are no libssl.

use std::fs;
use std::path::{Path, PathBuf};

use sslsweep_libssl::{LineFiles, LoadError, Tls, lines};

/// A folder of this test, gone when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> std::io::Result<Self> {
        let path = std::env::temp_dir().join(format!("sslsweep-{name}-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Self(path))
    }

    fn file(&self, name: &str, content: &[u8]) -> std::io::Result<PathBuf> {
        let path = self.0.join(name);
        fs::write(&path, content)?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

type TestResult = Result<(), Box<dyn std::error::Error>>;

fn refuse(path: &Path) -> LoadError {
    Tls::load(path, None).expect_err("it was loaded")
}

/// A libssl of the manifest.
fn genuine() -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let line = lines()?.into_iter().next().ok_or("the manifest lists no library")?;
    Ok(fs::read(line.libssl)?)
}

#[test]
fn a_missing_file_with_a_hint_at_its_neighbour() -> TestResult {
    let folder = Folder::new("missing")?;
    folder.file("libssl.so.3", b"")?;
    let error = refuse(&folder.0.join("libssl.so"));
    assert!(
        matches!(&error, LoadError::Missing { near: Some(near), .. } if near.ends_with("libssl.so.3"))
    );
    assert!(error.to_string().contains("did you mean"), "{error}");
    assert!(matches!(
        refuse(Path::new("/nonexistent/libssl.so.3")),
        LoadError::Missing { near: None, .. }
    ));
    Ok(())
}

#[test]
fn a_folder_and_a_text_file() -> TestResult {
    let folder = Folder::new("text")?;
    assert!(matches!(refuse(&folder.0), LoadError::NotAFile { .. }));
    let script = folder.file("libssl.so", b"INPUT(libssl.so.3)\n")?;
    assert!(matches!(refuse(&script), LoadError::NotElf { .. }));
    assert!(matches!(refuse(&folder.file("empty", b"")?), LoadError::NotElf { .. }));
    Ok(())
}

#[test]
fn a_file_cut_anywhere_is_refused_before_it_is_mapped() -> TestResult {
    let folder = Folder::new("cut")?;
    let whole = genuine()?;
    for length in [4, 5, 16, 63, 64, 100, 1000, whole.len() / 2, whole.len() - 1] {
        let error = refuse(&folder.file("libssl.so", &whole[..length])?);
        assert!(matches!(error, LoadError::Truncated { .. }), "{length}: {error}");
    }
    Ok(())
}

#[test]
fn other_machines_and_other_kinds_of_file() -> TestResult {
    let folder = Folder::new("foreign")?;
    let whole = genuine()?;
    let changed = |at: usize, byte: u8| {
        let mut copy = whole.clone();
        copy[at] = byte;
        folder.file("libssl.so", &copy)
    };
    let riscv = refuse(&changed(18, 0xf3)?);
    assert!(matches!(riscv, LoadError::WrongMachine { .. }));
    assert!(riscv.to_string().contains("is built for RISC-V and this program for"), "{riscv}");
    let program = refuse(&changed(16, 2)?);
    assert!(matches!(program, LoadError::NotShared { .. }));
    assert!(program.to_string().contains("is a program, not a shared object"), "{program}");
    // The smallest 32-bit shared object: a file header and no segment.
    let mut small = vec![0; 52];
    small[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
    (small[16], small[18], small[20], small[40]) = (3, 3, 1, 52);
    let small = refuse(&folder.file("lib32.so", &small)?);
    assert!(matches!(small, LoadError::WrongClass { .. }));
    assert!(
        small.to_string().contains("is a 32-bit library and this program is 64-bit"),
        "{small}"
    );
    Ok(())
}

#[test]
fn a_library_that_is_no_libssl() -> TestResult {
    let error = refuse(&LineFiles::named("3.0")?.libcrypto);
    assert!(matches!(error, LoadError::MissingSymbol { .. }), "{error}");
    Ok(())
}

#[test]
fn a_libssl_without_what_it_needs() -> TestResult {
    // A line whose libcrypto no other test of this process loads: it would be taken.
    let line = LineFiles::named("1.0.2")?;
    let folder = Folder::new("alone")?;
    let alone = folder.file("libssl.so", &fs::read(line.libssl)?)?;
    let error = match Tls::load(&alone, None) {
        Err(error) => error,
        Ok(_) => return Err("it was loaded although its libcrypto is not there".into()),
    };
    assert!(matches!(&error, LoadError::Linker { .. }), "{error}");
    Ok(())
}

#[test]
fn the_wrong_libcrypto() -> TestResult {
    let (one, other) = (LineFiles::named("1.1.1")?, LineFiles::named("3.0")?);
    let error = Tls::load(&one.libssl, Some(&other.libcrypto)).expect_err("it was loaded");
    assert!(matches!(error, LoadError::OtherLibcrypto { .. }), "{error}");
    Ok(())
}
