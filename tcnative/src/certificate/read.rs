//! Certificates and keys out of the forms in which they are kept.

use std::cell::Cell;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_long, c_void};
use std::os::unix::ffi::OsStrExt;
use std::panic::catch_unwind;
use std::path::Path;
use std::ptr;

use super::owned::{Owned, Source};
use crate::ffi::{self, EVP_PKEY, PKCS12, X509};
use crate::java::Refusal;
use crate::queue;

/// The name that Java gives to files of this kind.
const PKCS12_SUFFIX: &[u8] = b".pkcs12";

/// What a file had in it. It is cleared behind us: there may be a key in it.
pub(crate) struct Content(Vec<u8>);

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }
}

/// A password, which is cleared behind us.
pub(crate) struct Secret(CString);

impl From<CString> for Secret {
    fn from(text: CString) -> Self {
        Self(text)
    }
}

impl std::ops::Deref for Secret {
    type Target = CStr;

    fn deref(&self) -> &CStr {
        &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        clear(&mut std::mem::take(&mut self.0).into_bytes());
    }
}

impl Content {
    pub(super) fn read(file: &CStr) -> std::io::Result<Self> {
        std::fs::read(Path::new(OsStr::from_bytes(file.to_bytes()))).map(Self)
    }
}

impl std::ops::Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        clear(&mut self.0);
    }
}

/// Overwrites a secret.
fn clear(secret: &mut [u8]) {
    for byte in secret {
        // SAFETY: a byte that is ours; volatile, so that the compiler does not leave it out.
        unsafe { ptr::write_volatile(byte, 0) };
    }
}

/// The password of one key, for [`answer`].
struct Password<'a> {
    text: Option<&'a CStr>,
    asked: Cell<bool>,
}

/// Answers that there is no password, where OpenSSL would ask for one on the terminal.
pub(crate) unsafe extern "C" fn no_password(
    _buffer: *mut c_char,
    _size: c_int,
    _writing: c_int,
    _argument: *mut c_void,
) -> c_int {
    0
}

/// Called by OpenSSL where a key is encrypted.
unsafe extern "C" fn answer(
    buffer: *mut c_char,
    size: c_int,
    _writing: c_int,
    argument: *mut c_void,
) -> c_int {
    catch_unwind(|| {
        // SAFETY: the argument that `key` has given, which outlives its call of OpenSSL.
        let password = unsafe { &*argument.cast::<Password<'_>>() };
        password.asked.set(true);
        let Some(text) = password.text.map(CStr::to_bytes) else { return -1 };
        match c_int::try_from(text.len()) {
            Ok(length) if length <= size => {
                // SAFETY: the buffer has `size` bytes, which are not fewer, and is OpenSSL's own.
                unsafe { ptr::copy_nonoverlapping(text.as_ptr(), buffer.cast::<u8>(), text.len()) };
                length
            }
            // A part of it would be another password.
            _ => -1,
        }
    })
    .unwrap_or(-1)
}

/// The first private key of a PEM text.
pub(super) fn key(
    pem: &[u8],
    name: &str,
    password: Option<&CStr>,
) -> Result<Owned<EVP_PKEY>, Refusal> {
    let source = Source::new(pem)?;
    let password = Password { text: password, asked: Cell::new(false) };
    let argument = ptr::from_ref(&password).cast_mut().cast::<c_void>();
    // SAFETY: the BIO is live; the callback reads the argument as what it is, during this call.
    let key = unsafe {
        ffi::PEM_read_bio_PrivateKey(source.as_ptr(), ptr::null_mut(), Some(answer), argument)
    };
    // SAFETY: made just now, for us.
    unsafe { Owned::new(key) }.ok_or_else(|| {
        let text = queue::pop_text();
        let hint = match (password.asked.get(), password.text) {
            (false, _) => "",
            (true, None) => "; it is encrypted: give its password",
            (true, Some(_)) => "; it is encrypted: check its password",
        };
        Refusal::exception(format!("Unable to load certificate key {name} ({text}){hint}"))
    })
}

/// The first certificate of a PEM text, or the one in DER where it is no PEM.
pub(super) fn certificate(bytes: &[u8], name: &str) -> Result<Owned<X509>, Refusal> {
    let source = Source::new(bytes)?;
    let nothing = ptr::null_mut();
    // SAFETY: the BIO is live; the callback takes no argument.
    let found = unsafe {
        ffi::PEM_read_bio_X509_AUX(source.as_ptr(), nothing, Some(no_password), ptr::null_mut())
    };
    // SAFETY: made just now, for us.
    let mut found = unsafe { Owned::new(found) };
    if found.is_none() && is_end_of_pem() {
        queue::clear();
        found = super::owned::from_der(bytes);
    }
    found.ok_or_else(|| {
        Refusal::exception(format!("Unable to load certificate {name} ({})", queue::pop_text()))
    })
}

/// All certificates of a PEM text. Nothing where one of them cannot be read; what OpenSSL says of it is on the
/// queue then.
pub(super) fn certificates(pem: &[u8]) -> Option<Vec<Owned<X509>>> {
    let source = Source::new(pem).ok()?;
    let nothing = ptr::null_mut();
    let mut all = Vec::new();
    loop {
        // SAFETY: the BIO is live; the callback takes no argument.
        let next = unsafe {
            ffi::PEM_read_bio_X509(source.as_ptr(), nothing, Some(no_password), ptr::null_mut())
        };
        // SAFETY: made just now, for us.
        match unsafe { Owned::new(next) } {
            Some(next) => all.push(next),
            None if is_end_of_pem() => {
                queue::clear();
                return Some(all);
            }
            None => return None,
        }
    }
}

/// Whether the last error says that there is no (more) PEM.
fn is_end_of_pem() -> bool {
    // SAFETY: takes nothing; ERR_peek_last_error(3).
    let code = unsafe { ffi::ERR_peek_last_error() };
    // The library and the reason; ERR_GET_LIB(3).
    let (library, reason) = (code >> 23 & 0xff, code & 0x7f_ffff);
    code & ffi::SYSTEM_ERROR == 0
        && library == ffi::ERR_LIB_PEM_NUMBER as u64
        && reason == ffi::PEM_R_NO_START_LINE as u64
}

pub(super) fn is_pkcs12(file: &CStr) -> bool {
    file.to_bytes().ends_with(PKCS12_SUFFIX)
}

/// Certificate and key of a PKCS#12 file, which has no password or this one.
pub(super) fn pkcs12(
    bytes: &[u8],
    name: &str,
    password: Option<&CStr>,
) -> Result<(Owned<X509>, Owned<EVP_PKEY>), Refusal> {
    let refused = |why: &str| {
        let text = queue::pop_text();
        Refusal::exception(format!("Unable to load certificate {name} ({text}){why}"))
    };
    let source = Source::new(bytes)?;
    // SAFETY: the BIO is live; no object is reused.
    let file = unsafe { ffi::d2i_PKCS12_bio(source.as_ptr(), ptr::null_mut()) };
    // SAFETY: made just now, for us.
    let file = unsafe { Owned::new(file) }.ok_or_else(|| refused("; it is no PKCS#12 file"))?;
    let password = fitting(&file, password).ok_or_else(|| match password {
        Some(_) => refused("; check its password"),
        None => refused("; give its password"),
    })?;
    let (mut key, mut certificate) = (ptr::null_mut(), ptr::null_mut());
    let text = password.map_or(ptr::null(), CStr::as_ptr);
    let others = ptr::null_mut();
    // SAFETY: the file is live; the password ends with a NUL or is null; the places are ours.
    let done =
        unsafe { ffi::PKCS12_parse(file.as_ptr(), text, &mut key, &mut certificate, others) };
    // SAFETY: null, or made just now, for us.
    let key = unsafe { Owned::new(key) };
    // SAFETY: as above.
    let certificate = unsafe { Owned::new(certificate) };
    match (done, certificate, key) {
        (1, Some(certificate), Some(key)) => Ok((certificate, key)),
        (1, None, _) => Err(refused("; there is no certificate for a key in it")),
        (1, _, None) => Err(refused("; there is no private key in it")),
        _ => Err(refused("")),
    }
}

/// The password that a file's MAC fits: none at all, the empty one, or the given one.
fn fitting<'a>(file: &Owned<PKCS12>, given: Option<&'a CStr>) -> Option<Option<&'a CStr>> {
    [Some(c""), None, given].into_iter().find(|password| {
        queue::clear();
        let text = password.map_or(ptr::null(), CStr::as_ptr);
        let length = password.map_or(0, CStr::count_bytes);
        let Ok(length) = c_int::try_from(length) else { return false };
        // SAFETY: the file is live; the password is null or has that length.
        let fits = unsafe { ffi::PKCS12_verify_mac(file.as_ptr(), text, length) };
        fits == 1
    })
}

/// The first block of a PEM text with this label, with its marks.
pub(super) fn block<'a>(pem: &'a [u8], label: &str) -> Option<&'a [u8]> {
    let find = |bytes: &[u8], mark: &[u8]| bytes.windows(mark.len()).position(|it| it == mark);
    let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
    let start = find(pem, begin.as_bytes())?;
    let rest = pem.get(start..)?;
    let length = find(rest, end.as_bytes())? + end.len();
    rest.get(..length)
}

/// The parameters of a PEM block.
pub(super) fn parameters(pem: &[u8]) -> Option<Owned<EVP_PKEY>> {
    let source = Source::new(pem).ok()?;
    // SAFETY: the BIO is live; no object is reused.
    let found = unsafe { ffi::PEM_read_bio_Parameters(source.as_ptr(), ptr::null_mut()) };
    // SAFETY: made just now, for us.
    unsafe { Owned::new(found) }
}

/// `SSL_CTX_clear_extra_chain_certs`, a macro: the command.
pub(super) const CLEAR_EXTRA_CHAIN: c_int = 83;
/// `SSL_CTX_add0_chain_cert`, a macro: the argument that says that the certificate is not copied.
pub(super) const NOT_COPIED: c_long = 0;
