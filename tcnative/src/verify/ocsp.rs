//! Whether a certificate has been revoked, asked of the responders that it names: RFC 6960, over HTTP.
//!
//! Off unless `OpenSSLConf` says `NO_OCSP_CHECK=false`. It is asked in the handshake, by the thread that does it: a responder
//! has [`Settings::timeout`] for each certificate, connection included, and [`LONGEST`] bytes. OpenSSL's own client
//! (OSSL_HTTP_transfer(3)) does the talking, over IPv4 and IPv6. Responders over https are passed over.

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_ulong, c_void};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::AsRawFd;
use std::ptr;
use std::time::{Duration, Instant};

use crate::certificate::{Owned, freed};
use crate::ffi::{
    self, BIO, OCSP_BASICRESP, OCSP_CERTID, OCSP_REQUEST, OCSP_RESPONSE, X509_STORE_CTX,
};
use crate::queue;

/// No answer may be longer.
const LONGEST: usize = 64 * 1024;
/// `BIO_NOCLOSE`.
const NO_CLOSE: c_int = 0;
/// Clocks may differ by so many seconds.
const SKEW: c_long = 900;

freed!(
    OCSP_REQUEST by OCSP_REQUEST_free,
    OCSP_RESPONSE by OCSP_RESPONSE_free,
    OCSP_BASICRESP by OCSP_BASICRESP_free,
    OCSP_CERTID by OCSP_CERTID_free
);

/// What `OpenSSLConf` says of OCSP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    /// Responders are asked: `NO_OCSP_CHECK=false`.
    pub(crate) asks: bool,
    /// A certificate whose responders do not answer is accepted: `OCSP_SOFT_FAIL`.
    pub(crate) soft_fail: bool,
    /// `OCSP_TIMEOUT`, in milliseconds.
    pub(crate) timeout: Duration,
    /// `OCSP_VERIFY_FLAGS`: of OCSP_basic_verify(3).
    pub(crate) flags: c_ulong,
}

impl Default for Settings {
    fn default() -> Self {
        Self { asks: false, soft_fail: true, timeout: Duration::from_secs(15), flags: 0 }
    }
}

/// What is known of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Good,
    Revoked,
    /// The responder does not know it.
    Unknown,
    /// No answer that can be believed.
    Unanswered,
}

/// Asks about the certificate that OpenSSL is at, and that it has found good otherwise. Sets the error of the
/// verification where it is refused.
pub(super) fn accepts(store: *mut X509_STORE_CTX, settings: &Settings) -> bool {
    let status = ask(store, settings);
    // What was in the way of an answer is not the connection's.
    queue::clear();
    let error = match status {
        None | Some(Status::Good) => return true,
        Some(Status::Unanswered) if settings.soft_fail => return true,
        Some(Status::Revoked) => ffi::X509_V_ERR_CERT_REVOKED,
        Some(Status::Unknown | Status::Unanswered) => ffi::X509_V_ERR_UNABLE_TO_GET_CRL,
    };
    // SAFETY: OpenSSL's, and live during the callback.
    unsafe { ffi::X509_STORE_CTX_set_error(store, error) };
    false
}

/// Nothing where there is nobody to ask.
fn ask(store: *mut X509_STORE_CTX, settings: &Settings) -> Option<Status> {
    // SAFETY: OpenSSL's, and live during the callback.
    let certificate = unsafe { ffi::X509_STORE_CTX_get_current_cert(store) };
    // SAFETY: as above.
    let issuer = unsafe { ffi::X509_STORE_CTX_get0_current_issuer(store) };
    if certificate.is_null() || issuer.is_null() {
        return Some(Status::Unanswered);
    }
    // SAFETY: live, as above.
    if unsafe { ffi::X509_get_extension_flags(certificate) } & ffi::EXFLAG_SI != 0 {
        return None;
    }
    let responders = Responders::of(certificate);
    if responders.len() == 0 {
        return None;
    }
    let until = Instant::now() + settings.timeout;
    let question = Question::new(certificate, issuer);
    let mut status = Status::Unanswered;
    for place in 0..responders.len() {
        let Some(responder) = responders.get(place) else { continue };
        status = question
            .as_ref()
            .and_then(|question| question.put(responder, until, store, settings))
            .unwrap_or(status);
        if matches!(status, Status::Good | Status::Revoked) {
            break;
        }
    }
    Some(status)
}

/// The addresses of responders in a certificate.
struct Responders(*mut ffi::stack_st_OPENSSL_STRING);

impl Responders {
    fn of(certificate: *mut ffi::X509) -> Self {
        // SAFETY: the certificate is live; the list is ours.
        Self(unsafe { ffi::X509_get1_ocsp(certificate) })
    }

    fn len(&self) -> c_int {
        // SAFETY: the list is ours, or null, which has -1.
        unsafe { ffi::OPENSSL_sk_num(self.0.cast_const().cast()) }.max(0)
    }

    fn get(&self, place: c_int) -> Option<&CStr> {
        // SAFETY: the list is ours; a place that is not there gives null.
        let text = unsafe { ffi::OPENSSL_sk_value(self.0.cast_const().cast(), place) };
        if text.is_null() {
            return None;
        }
        // SAFETY: a text of OpenSSL's that lives as long as the list.
        Some(unsafe { CStr::from_ptr(text.cast()) })
    }
}

impl Drop for Responders {
    fn drop(&mut self) {
        // SAFETY: made by X509_get1_ocsp, or null; given back once.
        unsafe { ffi::X509_email_free(self.0) };
    }
}

/// Where a responder is, taken apart.
struct Address {
    host: CString,
    port: CString,
    path: CString,
    number: u16,
}

impl Address {
    /// Nothing where it is not of http.
    fn of(url: &CStr) -> Option<Self> {
        let (mut tls, mut number) = (0, 0);
        let (mut host, mut port, mut path) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        let nothing = ptr::null_mut();
        // SAFETY: the text ends with a NUL; each place is ours, or null for what is not wanted.
        let good = unsafe {
            ffi::OSSL_HTTP_parse_url(
                url.as_ptr(),
                &mut tls,
                nothing,
                &mut host,
                &mut port,
                &mut number,
                &mut path,
                nothing,
                nothing,
            )
        };
        let (host, port, path) = (taken(host), taken(port), taken(path));
        if good != 1 || tls != 0 {
            return None;
        }
        Some(Self { host: host?, port: port?, path: path?, number: number.try_into().ok()? })
    }

    /// A connection to the first of its addresses that takes one. OpenSSL would try one that refuses again and again.
    fn connect(&self, until: Instant) -> Option<TcpStream> {
        let host = self.host.to_str().ok()?.trim_start_matches('[').trim_end_matches(']');
        let places = (host, self.number).to_socket_addrs().ok()?;
        let stream = places.into_iter().find_map(|place| {
            let left = until.saturating_duration_since(Instant::now());
            // A time of 0 is an error.
            TcpStream::connect_timeout(&place, left).ok()
        })?;
        // OpenSSL waits for such a one no longer than it is told.
        stream.set_nonblocking(true).ok()?;
        Some(stream)
    }
}

/// A copy of a text that OpenSSL has made for us.
fn taken(text: *mut c_char) -> Option<CString> {
    if text.is_null() {
        return None;
    }
    // SAFETY: a text of OpenSSL's, which is ours.
    let copy = unsafe { CStr::from_ptr(text) }.to_owned();
    // SAFETY: as above; given back once.
    unsafe { ffi::CRYPTO_free(text.cast(), c"".as_ptr(), 0) };
    Some(copy)
}

/// A question about one certificate, with a nonce.
struct Question {
    request: Owned<OCSP_REQUEST>,
    /// Of the request's own.
    id: Owned<OCSP_CERTID>,
}

impl Question {
    fn new(certificate: *const ffi::X509, issuer: *const ffi::X509) -> Option<Self> {
        let id = || {
            // SAFETY: both are live; null stands for SHA-1, which responders know, OCSP_cert_to_id(3).
            let id = unsafe { ffi::OCSP_cert_to_id(ptr::null(), certificate, issuer) };
            // SAFETY: made just now, for us.
            unsafe { Owned::new(id) }
        };
        // SAFETY: takes nothing.
        let request = unsafe { ffi::OCSP_REQUEST_new() };
        // SAFETY: made just now, for us.
        let request = unsafe { Owned::new(request) }?;
        let asked = id()?;
        // SAFETY: both are live; the id is the request's where this succeeds.
        let added = unsafe { ffi::OCSP_request_add0_id(request.as_ptr(), asked.as_ptr()) };
        if added.is_null() {
            return None;
        }
        let _ = asked.into_raw();
        // SAFETY: the request is live; null and -1 make a random one of the usual length.
        if unsafe { ffi::OCSP_request_add1_nonce(request.as_ptr(), ptr::null_mut(), -1) } != 1 {
            return None;
        }
        Some(Self { request, id: id()? })
    }

    fn der(&self) -> Option<Vec<u8>> {
        // SAFETY: the request is live; without a place to write to only the length is given.
        let length = unsafe { ffi::i2d_OCSP_REQUEST(self.request.as_ptr(), ptr::null_mut()) };
        let mut der = vec![0; usize::try_from(length).ok().filter(|&length| length > 0)?];
        let mut end = der.as_mut_ptr();
        // SAFETY: as above; the place has the length that was just said.
        let written = unsafe { ffi::i2d_OCSP_REQUEST(self.request.as_ptr(), &mut end) };
        (written == length).then_some(der)
    }

    /// Nothing where there is no answer that can be believed.
    fn put(
        &self,
        responder: &CStr,
        until: Instant,
        store: *mut X509_STORE_CTX,
        settings: &Settings,
    ) -> Option<Status> {
        let der = self.der()?;
        let answer = post(&Address::of(responder)?, &der, until)?;
        self.judge(&answer, store, settings)
    }

    fn judge(
        &self,
        answer: &[u8],
        store: *mut X509_STORE_CTX,
        settings: &Settings,
    ) -> Option<Status> {
        let mut start = answer.as_ptr();
        let length = c_long::try_from(answer.len()).ok()?;
        // SAFETY: so many bytes; the place of the pointer is ours, and no object is reused.
        let response = unsafe { ffi::d2i_OCSP_RESPONSE(ptr::null_mut(), &mut start, length) };
        // SAFETY: made just now, for us.
        let response = unsafe { Owned::new(response) }?;
        // SAFETY: live.
        if unsafe { ffi::OCSP_response_status(response.as_ptr()) }
            != ffi::OCSP_RESPONSE_STATUS_SUCCESSFUL
        {
            return None;
        }
        // SAFETY: live.
        let basic = unsafe { ffi::OCSP_response_get1_basic(response.as_ptr()) };
        // SAFETY: made just now, for us.
        let basic = unsafe { Owned::new(basic) }?;
        // 0: another nonce than ours, an answer to somebody else's question. Many responders send none: their answers
        // are bounded by their times.
        // SAFETY: both are live.
        if unsafe { ffi::OCSP_check_nonce(self.request.as_ptr(), basic.as_ptr()) } == 0 {
            return None;
        }
        // SAFETY: OpenSSL's, and live during the callback.
        let trusted = unsafe { ffi::X509_STORE_CTX_get0_store(store) };
        // SAFETY: as above.
        let chain = unsafe { ffi::X509_STORE_CTX_get0_chain(store) };
        // SAFETY: all are live.
        if unsafe { ffi::OCSP_basic_verify(basic.as_ptr(), chain, trusted, settings.flags) } != 1 {
            return None;
        }
        let (mut status, mut this, mut next) = (-1, ptr::null_mut(), ptr::null_mut());
        // SAFETY: both are live; each place is ours, or null for what is not wanted. The times are the answer's.
        let found = unsafe {
            ffi::OCSP_resp_find_status(
                basic.as_ptr(),
                self.id.as_ptr(),
                &mut status,
                ptr::null_mut(),
                ptr::null_mut(),
                &mut this,
                &mut next,
            )
        };
        // SAFETY: the times live as long as the answer; the next one may be null.
        if found != 1 || unsafe { ffi::OCSP_check_validity(this, next, SKEW, -1) } != 1 {
            return None;
        }
        Some(match status {
            ffi::V_OCSP_CERTSTATUS_GOOD => Status::Good,
            ffi::V_OCSP_CERTSTATUS_REVOKED => Status::Revoked,
            _ => Status::Unknown,
        })
    }
}

/// What a responder answers.
fn post(address: &Address, body: &[u8], until: Instant) -> Option<Vec<u8>> {
    // It goes after the BIO.
    let stream = address.connect(until)?;
    // SAFETY: the socket is open until after the BIO has gone, which leaves it open.
    let socket = unsafe { ffi::BIO_new_socket(stream.as_raw_fd(), NO_CLOSE) };
    // SAFETY: made just now, for us.
    let socket: Owned<BIO> = unsafe { Owned::new(socket) }?;
    let length = c_int::try_from(body.len()).ok()?;
    // SAFETY: so many bytes, which are only read and outlive the BIO.
    let request = unsafe { ffi::BIO_new_mem_buf(body.as_ptr().cast(), length) };
    // SAFETY: made just now, for us.
    let request: Owned<BIO> = unsafe { Owned::new(request) }?;
    // Whole seconds; 0 would be for ever.
    let left = until.saturating_duration_since(Instant::now());
    let seconds = c_int::try_from(left.as_millis().div_ceil(1000)).unwrap_or(c_int::MAX).max(1);
    // SAFETY: all texts end with a NUL, and are live as is the request; null is for what is not used.
    let answer = unsafe {
        ffi::OSSL_HTTP_transfer(
            ptr::null_mut(),
            address.host.as_ptr(),
            address.port.as_ptr(),
            address.path.as_ptr(),
            0,
            ptr::null(),
            ptr::null(),
            socket.as_ptr(),
            socket.as_ptr(),
            None,
            ptr::null_mut(),
            0,
            ptr::null(),
            c"application/ocsp-request".as_ptr(),
            request.as_ptr(),
            c"application/ocsp-response".as_ptr(),
            1,
            LONGEST,
            seconds,
            0,
        )
    };
    // SAFETY: made just now, for us.
    let answer: Owned<BIO> = unsafe { Owned::new(answer) }?;
    let mut bytes = vec![0_u8; LONGEST];
    let mut filled = 0;
    while filled < bytes.len() {
        let room = bytes.get_mut(filled..)?;
        // SAFETY: the BIO is live; there is so much room, which is less than 64 KiB.
        let read = unsafe {
            ffi::BIO_read(answer.as_ptr(), room.as_mut_ptr().cast::<c_void>(), room.len() as c_int)
        };
        match usize::try_from(read) {
            Ok(read) if read > 0 => filled += read,
            _ => break,
        }
    }
    bytes.truncate(filled);
    Some(bytes)
}

#[cfg(test)]
mod tests;
