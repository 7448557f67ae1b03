//! HTTP/1.1 as far as a PUT needs it: one exchange, fed with the bytes of a connection as they come.
//!
//! Bodies are counted, hashed and dropped. Heads, chunk sizes and trailers are parsed where they lie
//! in the connection's buffer; nothing is allocated for a request that is in order.

use std::io::Write as _;

use httparse::Status;
use xxhash_rust::xxh3::Xxh3;

/// Longest head; the connection's buffer has room for it and a read more.
pub const MOST_HEAD: usize = 16 * 1024;
/// Longest line with a chunk's size and extensions.
const MOST_CHUNK_LINE: usize = 1024;
/// Longest trailer section.
const MOST_TRAILERS: usize = 8 * 1024;
/// Most header fields.
const MOST_FIELDS: usize = 64;

/// How far an exchange has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed.
    More,
    /// The client waits for an interim answer before it sends the body.
    Continue,
    /// The request is complete; bytes after it belong to the next one.
    Complete,
}

/// Why a request is refused: the answer's status and text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Status line without the version: `400 Bad Request`.
    pub status: &'static str,
    /// What is wrong and what to do, as the answer's body.
    pub text: &'static str,
}

const BAD: &str = "400 Bad Request";

const fn bad(text: &'static str) -> Refusal {
    Refusal { status: BAD, text }
}

const TOO_LARGE: Refusal = Refusal {
    status: "413 Content Too Large",
    text: "the body is longer than this server takes; see --most-body",
};
const LONG_HEAD: Refusal = Refusal {
    status: "431 Request Header Fields Too Large",
    text: "the head has more than 16 KiB or 64 fields",
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Head,
    /// A body of known length, with so many bytes to come.
    Fixed(u64),
    ChunkSize,
    /// A chunk, with so many bytes to come.
    Chunk(u64),
    /// The line end after a chunk.
    ChunkEnd,
    Trailers,
}

/// One request and the body that comes with it.
pub struct Exchange {
    state: State,
    hash: Xxh3,
    bytes: u64,
    most: u64,
    keep_alive: bool,
}

impl std::fmt::Debug for Exchange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange").field("state", &self.state).finish_non_exhaustive()
    }
}

impl Exchange {
    /// An exchange that takes bodies of up to `most` bytes.
    pub fn new(most: u64) -> Self {
        Self { state: State::Head, hash: Xxh3::new(), bytes: 0, most, keep_alive: true }
    }

    /// Begins the next exchange of the connection.
    pub fn next(&mut self) {
        self.state = State::Head;
        self.hash.reset();
        self.bytes = 0;
    }

    /// Whether the connection stays open after the answer.
    pub fn keeps_alive(&self) -> bool {
        self.keep_alive
    }

    /// Bytes of the body so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes the answer to a complete request.
    pub fn answer(&self, out: &mut Vec<u8>) {
        let hash = self.hash.digest();
        let digits = self.bytes.max(1).ilog10() as usize + 1;
        let length = r#"{"bytes":,"xxh3":"0123456789abcdef"}"#.len() + digits;
        let connection = if self.keep_alive { "" } else { "Connection: close\r\n" };
        // Writing into a Vec does not fail.
        let _ = write!(
            out,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
             {connection}\r\n{{\"bytes\":{},\"xxh3\":\"{hash:016x}\"}}",
            self.bytes
        );
    }

    /// Takes what it can from the front of `input`: how many bytes, and how far it has come.
    ///
    /// What it leaves must be given again, with more behind it.
    ///
    /// # Errors
    /// The request is refused; the connection is of no use after that.
    pub fn feed(&mut self, input: &[u8]) -> Result<(usize, Progress), Refusal> {
        let mut used = 0;
        loop {
            let rest = &input[used..];
            match self.state {
                State::Head => {
                    let Some((length, waits)) = self.head(rest)? else {
                        return Ok((used, Progress::More));
                    };
                    used += length;
                    if self.state == State::Fixed(0) {
                        self.state = State::Head;
                        return Ok((used, Progress::Complete));
                    }
                    // A client that has begun its body waits for nothing.
                    if waits && used == input.len() {
                        return Ok((used, Progress::Continue));
                    }
                }
                State::Fixed(left) => {
                    let taken = self.body(rest, left);
                    used += taken;
                    let left = left - taken as u64;
                    if left > 0 {
                        self.state = State::Fixed(left);
                        return Ok((used, Progress::More));
                    }
                    self.state = State::Head;
                    return Ok((used, Progress::Complete));
                }
                State::ChunkSize => {
                    let Some(length) = self.chunk_size(rest)? else {
                        return Ok((used, Progress::More));
                    };
                    used += length;
                }
                State::Chunk(left) => {
                    let taken = self.body(rest, left);
                    used += taken;
                    let left = left - taken as u64;
                    if left > 0 {
                        self.state = State::Chunk(left);
                        return Ok((used, Progress::More));
                    }
                    self.state = State::ChunkEnd;
                }
                State::ChunkEnd => match rest {
                    [b'\r', b'\n', ..] => {
                        used += 2;
                        self.state = State::ChunkSize;
                    }
                    [] | [b'\r'] => return Ok((used, Progress::More)),
                    _ => return Err(bad("a chunk does not end where its size says")),
                },
                State::Trailers => {
                    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
                    match httparse::parse_headers(rest, &mut fields) {
                        Ok(Status::Complete((length, _))) => {
                            self.state = State::Head;
                            return Ok((used + length, Progress::Complete));
                        }
                        Ok(Status::Partial) if rest.len() < MOST_TRAILERS => {
                            return Ok((used, Progress::More));
                        }
                        Ok(Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                            return Err(LONG_HEAD);
                        }
                        Err(_) => return Err(bad("the trailers are not header fields")),
                    }
                }
            }
        }
    }

    /// Takes up to `left` bytes of a body.
    fn body(&mut self, input: &[u8], left: u64) -> usize {
        let taken = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.hash.update(&input[..taken]);
        self.bytes += taken as u64;
        taken
    }

    fn chunk_size(&mut self, input: &[u8]) -> Result<Option<usize>, Refusal> {
        match httparse::parse_chunk_size(input) {
            Ok(Status::Complete((length, 0))) => {
                self.state = State::Trailers;
                Ok(Some(length))
            }
            Ok(Status::Complete((length, size))) => {
                if self.bytes.saturating_add(size) > self.most {
                    return Err(TOO_LARGE);
                }
                self.state = State::Chunk(size);
                Ok(Some(length))
            }
            Ok(Status::Partial) if input.len() < MOST_CHUNK_LINE => Ok(None),
            _ => Err(bad("a chunk's size is not a hexadecimal number on a line of its own")),
        }
    }

    /// Parses the head: its length, and whether the client waits for `100 Continue`. `None`: it is
    /// not complete yet.
    fn head(&mut self, input: &[u8]) -> Result<Option<(usize, bool)>, Refusal> {
        let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
        let mut request = httparse::Request::new(&mut fields);
        let length = match request.parse(input) {
            Ok(Status::Complete(length)) => length,
            Ok(Status::Partial) if input.len() < MOST_HEAD => return Ok(None),
            Ok(Status::Partial) | Err(httparse::Error::TooManyHeaders) => return Err(LONG_HEAD),
            Err(_) => return Err(bad("this is not an HTTP/1 request")),
        };
        if length > MOST_HEAD {
            return Err(LONG_HEAD);
        }
        let current = request.version == Some(1);
        let head = Head::read(request.headers)?;
        if request.method != Some("PUT") {
            return Err(Refusal {
                status: "405 Method Not Allowed",
                text: "this server takes PUT only: curl -k -T FILE https://...",
            });
        }
        if current && !head.host {
            return Err(bad("HTTP/1.1 needs a Host field"));
        }
        self.keep_alive = !head.close && (current || head.keep_alive);
        self.state = match (head.length, head.chunked) {
            (Some(_), true) => return Err(bad("Content-Length and Transfer-Encoding together")),
            (None, true) if !current => return Err(bad("HTTP/1.0 has no Transfer-Encoding")),
            (None, true) => State::ChunkSize,
            (Some(length), false) if length > self.most => return Err(TOO_LARGE),
            (length, false) => State::Fixed(length.unwrap_or(0)),
        };
        Ok(Some((length, head.waits && current)))
    }
}

/// What the fields of a head say.
#[derive(Default)]
struct Head {
    length: Option<u64>,
    chunked: bool,
    host: bool,
    close: bool,
    keep_alive: bool,
    waits: bool,
}

impl Head {
    fn read(fields: &[httparse::Header<'_>]) -> Result<Self, Refusal> {
        let mut head = Self::default();
        for field in fields {
            let name = field.name;
            if name.eq_ignore_ascii_case("content-length") {
                let length = content_length(field.value)?;
                if head.length.replace(length).is_some() {
                    return Err(bad("more than one Content-Length"));
                }
            } else if name.eq_ignore_ascii_case("transfer-encoding") {
                if head.chunked || !field.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    return Err(Refusal {
                        status: "501 Not Implemented",
                        text: "the only Transfer-Encoding known here is chunked",
                    });
                }
                head.chunked = true;
            } else if name.eq_ignore_ascii_case("host") {
                if std::mem::replace(&mut head.host, true) {
                    return Err(bad("more than one Host"));
                }
            } else if name.eq_ignore_ascii_case("connection") {
                for option in field.value.split(|byte| *byte == b',') {
                    head.close |= option.trim_ascii().eq_ignore_ascii_case(b"close");
                    head.keep_alive |= option.trim_ascii().eq_ignore_ascii_case(b"keep-alive");
                }
            } else if name.eq_ignore_ascii_case("expect") {
                if !field.value.trim_ascii().eq_ignore_ascii_case(b"100-continue") {
                    return Err(Refusal {
                        status: "417 Expectation Failed",
                        text: "the only expectation known here is 100-continue",
                    });
                }
                head.waits = true;
            }
        }
        Ok(head)
    }
}

fn content_length(value: &[u8]) -> Result<u64, Refusal> {
    let value = value.trim_ascii();
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(bad("Content-Length is not a number"));
    }
    let digits = std::str::from_utf8(value).map_err(|_| bad("Content-Length is not a number"))?;
    digits.parse().map_err(|_| TOO_LARGE)
}

/// Writes the answer to a request that is refused.
pub fn refuse(refusal: Refusal, out: &mut Vec<u8>) {
    let Refusal { status, text } = refusal;
    let allow = if status.starts_with("405") { "Allow: PUT\r\n" } else { "" };
    let length = text.len() + 1;
    // Writing into a Vec does not fail.
    let _ = write!(
        out,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n{allow}\
         Connection: close\r\n\r\n{text}\n"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds a request in pieces, as a connection does: what is not taken comes again.
    fn feed(pieces: &[&[u8]]) -> Result<(Exchange, Vec<u8>), Refusal> {
        let mut exchange = Exchange::new(1 << 20);
        let mut buffer = Vec::new();
        for piece in pieces {
            buffer.extend_from_slice(piece);
            let (used, progress) = exchange.feed(&buffer)?;
            buffer.drain(..used);
            if progress == Progress::Complete {
                return Ok((exchange, buffer));
            }
        }
        panic!("not complete: {exchange:?}, {:?} left", String::from_utf8_lossy(&buffer));
    }

    fn answer(exchange: &Exchange) -> String {
        let mut out = Vec::new();
        exchange.answer(&mut out);
        String::from_utf8(out).unwrap()
    }

    fn hash(body: &[u8]) -> u64 {
        xxhash_rust::xxh3::xxh3_64(body)
    }

    const FIXED: &[u8] = b"PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello";
    const CHUNKED: &[u8] = b"PUT /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
        1\r\nh\r\n003;name=value\r\nell\r\n1\r\no\r\n0\r\nDigest: none\r\nMore: x\r\n\r\n";

    #[test]
    fn a_request_may_be_split_at_every_byte() {
        for whole in [FIXED, CHUNKED] {
            for at in 1..whole.len() {
                let (head, tail) = whole.split_at(at);
                let (exchange, left) = feed(&[head, tail]).unwrap();
                assert_eq!((exchange.bytes, exchange.hash.digest()), (5, hash(b"hello")), "{at}");
                assert!(left.is_empty());
            }
            let single: Vec<&[u8]> = whole.chunks(1).collect();
            let (exchange, _) = feed(&single).unwrap();
            assert_eq!(exchange.hash.digest(), hash(b"hello"));
        }
    }

    #[test]
    fn what_follows_belongs_to_the_next_request() {
        for whole in [FIXED, CHUNKED] {
            let two = [whole, b"PUT /y"].concat();
            let (mut exchange, left) = feed(&[&two]).unwrap();
            assert_eq!(left, b"PUT /y");
            exchange.next();
            assert_eq!((exchange.bytes, exchange.hash.digest()), (0, hash(b"")));
        }
    }

    #[test]
    fn the_answer_has_the_length_it_says() {
        for size in [0, 1, 9, 10, 99, 100, 12_345] {
            let body = vec![b'x'; size];
            let head = format!("PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {size}\r\n\r\n");
            let (exchange, _) = feed(&[head.as_bytes(), &body]).unwrap_or_else(|_| panic!());
            let answer = answer(&exchange);
            let (head, text) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.contains(&format!("Content-Length: {}", text.len())), "{answer}");
            assert_eq!(text, format!("{{\"bytes\":{size},\"xxh3\":\"{:016x}\"}}", hash(&body)));
        }
    }

    #[test]
    fn a_client_that_waits_is_told_to_go_on() {
        let head =
            b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-Continue\r\n\r\n";
        let mut exchange = Exchange::new(10);
        assert_eq!(exchange.feed(head), Ok((head.len(), Progress::Continue)));
        assert_eq!(exchange.feed(b"ab"), Ok((2, Progress::Complete)));
        let mut exchange = Exchange::new(10);
        let begun = [&head[..], b"a"].concat();
        assert_eq!(exchange.feed(&begun), Ok((begun.len(), Progress::More)));
    }

    #[test]
    fn connections_stay_open_as_the_versions_say() {
        for (head, stays) in [
            ("PUT / HTTP/1.1\r\nHost: a\r\n\r\n", true),
            ("PUT / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n", false),
            ("PUT / HTTP/1.0\r\n\r\n", false),
            ("PUT / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true),
        ] {
            let (exchange, _) = feed(&[head.as_bytes()]).unwrap();
            assert_eq!(exchange.keeps_alive(), stays, "{head}");
            assert_eq!(answer(&exchange).contains("Connection: close"), !stays);
        }
    }

    #[test]
    fn bad_requests_are_refused() {
        let put = |fields: &str| format!("PUT / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let chunked = |rest: &str| put("Transfer-Encoding: chunked\r\n") + rest;
        for (request, status) in [
            ("\u{1}\u{2}\u{3}".to_owned(), "400"),
            ("PUT / HTTP/2.0\r\n\r\n".to_owned(), "400"),
            ("PUT / HTTP/1.1\r\n\r\n".to_owned(), "400"),
            ("GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), "405"),
            (put("Host: b\r\n"), "400"),
            (put("Content-Length: -1\r\n"), "400"),
            (put("Content-Length: +1\r\n"), "400"),
            (put("Content-Length:\r\n"), "400"),
            (put("Content-Length: 1\r\nContent-Length: 1\r\n"), "400"),
            (put("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"), "400"),
            (put("Content-Length: 1048577\r\n"), "413"),
            (put("Content-Length: 99999999999999999999999\r\n"), "413"),
            (put("Transfer-Encoding: gzip, chunked\r\n"), "501"),
            (put("Expect: miracles\r\n"), "417"),
            (put(&"X: y\r\n".repeat(MOST_FIELDS)), "431"),
            (put(&format!("X: {}", "y".repeat(MOST_HEAD))), "431"),
            (chunked("x\r\n"), "400"),
            (chunked("-1\r\n"), "400"),
            (chunked("1\r\nab\r\n"), "400"),
            (chunked("100001\r\n"), "413"),
            (chunked("ffffffffffffffff\r\n"), "413"),
            (chunked("fffffffffffffffff\r\n"), "400"),
            (chunked(&format!("1;{}", "x".repeat(MOST_CHUNK_LINE))), "400"),
            (chunked("0\r\n\u{0}\r\n\r\n"), "400"),
            (chunked(&format!("0\r\nX: {}", "y".repeat(MOST_TRAILERS))), "431"),
        ] {
            let Err(refusal) = Exchange::new(1 << 20).feed(request.as_bytes()) else {
                panic!("taken: {request}");
            };
            assert!(refusal.status.starts_with(status), "{request}: {refusal:?}");
            let mut out = Vec::new();
            refuse(refusal, &mut out);
            let text = String::from_utf8(out).unwrap();
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.contains(&format!("Content-Length: {}", body.len())), "{text}");
        }
        let whole = "PUT / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n80000\r\n";
        let mut exchange = Exchange::new(1 << 20);
        exchange.feed(whole.as_bytes()).unwrap();
        exchange.feed(&vec![0; 0x80000]).unwrap();
        assert_eq!(exchange.feed(b"\r\n80001\r\n"), Err(TOO_LARGE), "all chunks together count");
    }
}
