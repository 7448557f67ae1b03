//! What a file holds of OpenSSL, told without loading it.
//!
//! A *provider* exports `ERR_clear_error`: a libcrypto, or a program that has one linked in and
//! exports it (node). A *user* imports `ERR_*` or `SSL_*` from a provider. A file that is neither may
//! still have an OpenSSL linked in that it keeps to itself, with error queues that nobody else can
//! reach. Such a *hidden* copy is told by two marks that agree, as one alone proves little: programs
//! print OpenSSL's version and carry its messages without having it inside.
//!
//! - the version text, a C string of its own: `OpenSSL 3.0.15 3 Sep 2024`, `BoringSSL`, `AWS-LC 5.12.0`;
//! - what only the code of the error queue has: the format that ERR_error_string_n(3) prints with, and
//!   the name of its source file in the records it makes, `crypto/err/err.c`.

use std::fs::File;
use std::io;
use std::ops::Range;

use memchr::memmem;

use super::Line;
use crate::sys::elf::{self, Elf, ElfError, Piece};

/// Longest version text that is looked for; real ones have up to 50 bytes.
const LONGEST: usize = 96;

/// Pieces overlap by a text with the bytes before and behind it.
const OVERLAP: usize = 2 * LONGEST;

/// How the code of the error queue prints an error: OpenSSL and LibreSSL; BoringSSL and AWS-LC.
const FORMAT: &str = "error:%08lX:%s:%s:%s";
const FORMAT_INTERNAL: &str = "error:%08x:%s:OPENSSL_internal:%s";

/// Source file of the error queue, at the end of a path; `err.cc` in BoringSSL.
const SOURCE: &str = "crypto/err/err.c";

/// Source file of libssl: TLS is inside, too. Without a folder in 1.0.2, `ssl_lib.cc` in BoringSSL.
const SOURCE_OF_TLS: &str = "ssl_lib.c";

/// What a file holds of OpenSSL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// It exports ERR_clear_error: a libcrypto, or a program with one.
    pub provides: bool,
    /// It imports ERR_* or SSL_* calls: a user of another file's libcrypto.
    pub imports: bool,
    /// The version text found in its data; a user may carry that of the OpenSSL it was built with.
    pub version_text: Option<String>,
    /// The line that the version text tells.
    pub line: Option<Line>,
    /// Why its libcrypto is out of reach, where it has one and does not provide it.
    pub hidden: Option<Hidden>,
    /// Whether a hidden libcrypto has a libssl beside it in the file. Without one no connection's fate
    /// is read from its error queues.
    pub tls: bool,
}

/// Why a libcrypto that is part of a file is out of reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hidden {
    /// Linked in, and its calls are not exported.
    NotExported,
    /// Its calls are exported under other names.
    Prefixed {
        /// The name that its ERR_clear_error has.
        symbol: String,
    },
}

/// Reads the facts off an ELF file.
///
/// Reads the data of files that do not merely use a libcrypto: up to 100 MB for a large program.
/// Never on the path of a task.
///
/// # Errors
/// The file could not be read to its end.
pub fn inspect(elf: &Elf) -> Result<Facts, ElfError> {
    let mut facts = Facts {
        provides: elf.defines("ERR_clear_error"),
        imports: elf.imported().any(is_call_of_openssl),
        ..Facts::default()
    };
    if !facts.provides {
        facts.hidden = prefixed(elf).map(|symbol| Hidden::Prefixed { symbol });
    }
    // A libssl, and whatever else uses a libcrypto, may carry a version text; only a file that is alone
    // needs a closer look.
    if facts.imports && !facts.provides && facts.hidden.is_none() {
        return Ok(facts);
    }
    let mut marks = Marks::default();
    elf.scan(OVERLAP, |piece| marks.look(piece))?;
    if !facts.provides && facts.hidden.is_none() && marks.agree() {
        facts.hidden = Some(Hidden::NotExported);
    }
    facts.tls = facts.hidden.is_some() && marks.tls;
    facts.version_text = marks.version();
    facts.line = facts.version_text.as_deref().map(Line::from_version_text);
    Ok(facts)
}

/// Reads the facts off a memory image, for objects whose files are gone. `None`: nothing of OpenSSL.
///
/// Symbols are not looked at: what has the marks of a libcrypto is taken for one that is hidden.
///
/// # Errors
/// The operating system's reason why the ranges cannot be read.
pub fn inspect_memory(memory: &File, ranges: &[Range<u64>]) -> io::Result<Option<Facts>> {
    let mut marks = Marks::default();
    elf::scan(memory, ranges, OVERLAP, |piece| marks.look(piece))?;
    let version_text = marks.version();
    Ok(marks.agree().then(|| Facts {
        line: version_text.as_deref().map(Line::from_version_text),
        version_text,
        hidden: Some(Hidden::NotExported),
        tls: marks.tls,
        ..Facts::default()
    }))
}

/// Whether `name` is a call into OpenSSL's error queue or libssl.
///
/// NSS has calls that begin with `SSL_` too; theirs go on in capitals (`SSL_ImportFD`).
fn is_call_of_openssl(name: &[u8]) -> bool {
    let behind = |prefix: &[u8]| name.strip_prefix(prefix).and_then(|rest| rest.first());
    name.starts_with(b"SSL_CTX_")
        || behind(b"SSL_").is_some_and(u8::is_ascii_lowercase)
        || behind(b"ERR_").is_some_and(u8::is_ascii_lowercase)
}

/// The name of an ERR_clear_error that is exported with something before it (`aws_lc_0_47_0_`).
fn prefixed(elf: &Elf) -> Option<String> {
    elf.defined().find_map(|symbol| {
        let prefix = symbol.strip_suffix(b"ERR_clear_error")?;
        let sibling = [prefix, b"ERR_peek_error"].concat();
        let has_both = !prefix.is_empty() && elf.defined().any(|name| name == sibling);
        has_both.then(|| String::from_utf8_lossy(symbol).into_owned())
    })
}

/// The marks of a libcrypto in a file's data.
#[derive(Debug, Default)]
struct Marks {
    openssl: Option<String>,
    libressl: Option<String>,
    aws_lc: Option<String>,
    boringssl: bool,
    format: bool,
    format_internal: bool,
    source: bool,
    tls: bool,
}

impl Marks {
    /// Looks for marks in a piece of data; returns whether to go on.
    fn look(&mut self, piece: Piece<'_>) -> bool {
        let find = |needle: &str, found: &mut dyn FnMut(Text<'_>) -> bool| {
            memmem::find_iter(piece.bytes, needle.as_bytes())
                .filter_map(|at| Text::at(piece, at, needle.len()))
                .any(found);
        };
        if self.openssl.is_none() {
            find("OpenSSL ", &mut |text| {
                self.openssl = text.version(is_openssl_version);
                self.openssl.is_some()
            });
        }
        if self.libressl.is_none() {
            find("LibreSSL ", &mut |text| {
                self.libressl = text.version(is_plain_version);
                self.libressl.is_some()
            });
        }
        if self.aws_lc.is_none() {
            find("AWS-LC ", &mut |text| {
                self.aws_lc = text.version(is_plain_version);
                self.aws_lc.is_some()
            });
        }
        if !self.boringssl {
            find("BoringSSL", &mut |text| {
                self.boringssl |= text.is_whole();
                self.boringssl
            });
        }
        if !self.format {
            find(FORMAT, &mut |text| {
                self.format |= text.is_whole();
                self.format
            });
        }
        if !self.format_internal {
            find(FORMAT_INTERNAL, &mut |text| {
                self.format_internal |= text.is_whole();
                self.format_internal
            });
        }
        if !self.source {
            find(SOURCE, &mut |text| {
                self.source |= text.ends_path();
                self.source
            });
        }
        if !self.tls {
            find(SOURCE_OF_TLS, &mut |text| {
                self.tls |= matches!(text.before, 0 | b'/') && text.ends_path();
                self.tls
            });
        }
        true
    }

    /// Whether two marks say that the code of an error queue is here.
    fn agree(&self) -> bool {
        let version = self.version().is_some();
        let format = self.format || self.format_internal;
        (version && (format || self.source)) || (format && self.source)
    }

    /// The version text of the family whose code was found.
    fn version(&self) -> Option<String> {
        let boringssl = || self.boringssl.then(|| "BoringSSL".to_owned());
        let internal = || self.aws_lc.clone().or_else(boringssl);
        let classic = || self.libressl.clone().or_else(|| self.openssl.clone());
        if self.format_internal && !self.format {
            internal().or_else(classic)
        } else {
            classic().or_else(internal)
        }
    }
}

/// A text that was found, and what surrounds it.
struct Text<'a> {
    /// The byte before it; 0 at the start of a range.
    before: u8,
    /// The text itself and all behind it, up to the longest version.
    found: &'a [u8],
    /// What is behind it.
    behind: &'a [u8],
}

impl<'a> Text<'a> {
    /// The text of `length` bytes at `at`, unless the next piece shows more of what is behind it.
    fn at(piece: Piece<'a>, at: usize, length: usize) -> Option<Self> {
        let rest = &piece.bytes[at..];
        if rest.len() < LONGEST && !piece.is_last {
            return None;
        }
        let before = match at.checked_sub(1) {
            Some(before) => piece.bytes[before],
            None if piece.is_first => 0,
            // The piece before has shown it with what precedes it.
            None => return None,
        };
        let found = &rest[..rest.len().min(LONGEST)];
        Some(Self { before, found, behind: &found[length..] })
    }

    /// Whether it is a C string of its own.
    fn is_whole(&self) -> bool {
        self.before == 0 && self.behind.first() == Some(&0)
    }

    /// Whether it ends the path of a source file: `.c` or `.cc`.
    fn ends_path(&self) -> bool {
        matches!(self.behind, [0, ..] | [b'c', 0, ..])
    }

    /// The C string that begins here, if what is behind the product's name passes `is_version`.
    ///
    /// It may be the end of a longer string: linkers merge `RSA part of OpenSSL 1.0.2o  27 Mar 2018`
    /// with `OpenSSL 1.0.2o  27 Mar 2018`.
    fn version(&self, is_version: fn(&str) -> bool) -> Option<String> {
        let end = self.found.iter().position(|&byte| byte == 0)?;
        let name = self.found.len() - self.behind.len();
        let text = std::str::from_utf8(&self.found[..end]).ok()?;
        (is_version(text.get(name..)?)).then(|| text.trim_end().to_owned())
    }
}

/// `3.0.15 3 Sep 2024`, `1.0.2k-fips  26 Jan 2017`, `1.1.1k  FIPS 25 Mar 2021`, `3.6.0-dev `.
fn is_openssl_version(text: &str) -> bool {
    let (number, date) = text.split_once(' ').unwrap_or((text, ""));
    let digits = number.split(['.', '-', '+']).take(3).all(|part| {
        part.starts_with(|first: char| first.is_ascii_digit())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    });
    let is_number = digits
        && number.split('.').count() >= 3
        && number.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-+~_".contains(&byte));
    let words: Vec<_> = date.split_ascii_whitespace().collect();
    let is_date = match words[..] {
        // Development releases have none.
        [] => number.contains('-'),
        [day, month, year] | ["FIPS" | "FIPS-140", day, month, year] => {
            let is_placeholder = (day, month, year) == ("xx", "XXX", "xxxx");
            let is_month = month.len() == 3 && month.bytes().all(|byte| byte.is_ascii_alphabetic());
            let is_number = |text: &str, most| {
                text.len() <= most && text.bytes().all(|byte| byte.is_ascii_digit())
            };
            is_placeholder || (is_number(day, 2) && is_month && is_number(year, 4))
        }
        _ => false,
    };
    is_number && is_date
}

/// `3.9.2`, `5.12.0`, `FIPS 3.0.0`.
fn is_plain_version(text: &str) -> bool {
    let number = text.strip_prefix("FIPS ").unwrap_or(text);
    number.split('.').count() >= 2
        && number.split('.').all(|part| {
            part.starts_with(|first: char| first.is_ascii_digit())
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(data: &[u8]) -> Marks {
        let mut marks = Marks::default();
        marks.look(Piece { bytes: data, is_first: true, is_last: true });
        marks
    }

    #[test]
    fn version_texts_of_real_releases_are_read() {
        for text in [
            "OpenSSL 0.9.8zh 3 Dec 2015",
            "OpenSSL 1.0.2o  27 Mar 2018",
            "OpenSSL 1.0.2k-fips  26 Jan 2017",
            "OpenSSL 1.1.1k  FIPS 25 Mar 2021",
            "OpenSSL 1.1.1-dev  xx XXX xxxx",
            "OpenSSL 1.1.1w+quic  11 Sep 2023",
            "OpenSSL 3.0.15 3 Sep 2024",
            "OpenSSL 3.6.0-dev",
            "OpenSSL 4.0.0-alpha1 27 Mar 2026",
            "LibreSSL 3.9.2",
            "LibreSSL 2.1.6",
            "AWS-LC 5.12.0",
            "AWS-LC FIPS 3.0.0",
            "BoringSSL",
        ] {
            let data = format!("something\0{text}\0something else\0");
            assert_eq!(marks(data.as_bytes()).version().as_deref(), Some(text));
            let alone = format!("{text}\0");
            assert_eq!(marks(alone.as_bytes()).version().as_deref(), Some(text));
        }
        let merged = b"\0RSA part of OpenSSL 1.0.2o  27 Mar 2018\0";
        assert_eq!(marks(merged).version().as_deref(), Some("OpenSSL 1.0.2o  27 Mar 2018"));
    }

    #[test]
    fn texts_that_speak_of_openssl_are_not_versions() {
        for text in [
            "OpenSSL %s",
            "OpenSSL 3's legacy provider failed to load.",
            "OpenSSL >= 1.1.x required",
            "OpenSSL 1.1.1 or newer is required",
            "OpenSSL 3.0.x implementation providers",
            "OpenSSL 1.0.2 27 March 2018",
            "OpenSSL 1.1.1 (compatible; AWS-LC 5.12.0)",
            "Could not set default key exchange groups for BoringSSL.",
            "AWS-LC FIPS failure caused by:",
            "LibreSSL is not supported",
            "OpenSSL 3.0",
        ] {
            let data = format!("\0{text}\0");
            assert_eq!(marks(data.as_bytes()).version(), None, "{text}");
        }
        // Not a C string: the next text of a Rust program follows at once.
        assert_eq!(marks(b"\0OpenSSL 3.0.15 3 Sep 2024and more\0").version(), None);
    }

    #[test]
    fn one_mark_alone_is_no_libcrypto() {
        let version = "built with OpenSSL 3.0.11 19 Sep 2023\0";
        let (format, source) = (format!("\0{FORMAT}\0"), format!("\0../{SOURCE}\0"));
        for alone in [version, &format, &source] {
            assert!(!marks(alone.as_bytes()).agree(), "{alone:?}");
        }
        for both in [
            format!("{version}{format}"),
            format!("{version}{source}"),
            format!("{format}{source}"),
            format!("\0BoringSSL\0{FORMAT_INTERNAL}\0"),
        ] {
            assert!(marks(both.as_bytes()).agree(), "{both:?}");
        }
    }

    #[test]
    fn a_libssl_is_told_by_its_source_file() {
        for (data, tls) in [
            (&b"\0ssl_lib.c\0"[..], true),
            (b"\0../ssl/ssl_lib.c\0", true),
            (b"\0third_party/boringssl/ssl/ssl_lib.cc\0", true),
            (b"\0my_ssl_lib.c\0", false),
            (b"\0ssl/ssl_lib.cpp\0", false),
        ] {
            assert_eq!(marks(data).tls, tls, "{data:?}");
        }
    }

    #[test]
    fn marks_are_found_on_the_border_of_pieces() {
        const TEXT: &[u8] = b"\0OpenSSL 3.0.15 3 Sep 2024\0";
        let mut data = vec![b'x'; 4096];
        data[2000..2000 + TEXT.len()].copy_from_slice(TEXT);
        for border in 1990..2200 {
            let mut marks = Marks::default();
            let second = border - OVERLAP.min(border);
            marks.look(Piece { bytes: &data[..border], is_first: true, is_last: false });
            marks.look(Piece { bytes: &data[second..], is_first: false, is_last: true });
            assert_eq!(marks.version().as_deref(), Some("OpenSSL 3.0.15 3 Sep 2024"), "{border}");
        }
    }

    #[test]
    fn calls_of_other_libraries_are_not_taken_for_openssl() {
        for (name, is_openssl) in [
            ("ERR_peek_error", true),
            ("SSL_get_error", true),
            ("SSL_CTX_new", true),
            ("SSL_ImportFD", false),
            ("SSL_OptionSet", false),
            ("ERR", false),
            ("SSLeay", false),
        ] {
            assert_eq!(is_call_of_openssl(name.as_bytes()), is_openssl, "{name}");
        }
    }
}
