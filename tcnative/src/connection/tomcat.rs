//! Reads as Tomcat does, `SecureNioChannel.read` with `OpenSSLEngine.unwrap` inside: it asks in an order of its own, and
//! waits for the network when it believes that nothing is here.

use super::pair::{End, Pair, TLS_1_2, TLS_1_3, body, client, library, server};
use super::*;
use crate::queue::take_last;

/// Of the buffer that the socket is read into.
const NETWORK: usize = 18_713;

struct Channel<'a> {
    end: End,
    /// What the peer has sent and the socket still has.
    wire: &'a [u8],
    network: Vec<u8>,
}

/// What a read has got.
#[derive(Debug, PartialEq)]
enum Got {
    Bytes(Vec<u8>),
    /// Nothing, and the peer has said its end.
    End,
    Error,
    /// Nothing: Tomcat waits until the socket has something.
    Waits,
}

impl Channel<'_> {
    /// `pendingReadableBytesInSSL`: the priming read, then the number. Nothing for an error.
    fn prime(&self) -> Option<usize> {
        self.end.prime();
        (take_last() == 0).then(|| fact(self.end.ssl, Fact::Readable) as usize)
    }

    fn read(&mut self, room: usize) -> Got {
        let (now, later) = self.wire.split_at(self.wire.len().min(NETWORK - self.network.len()));
        self.network.extend_from_slice(now);
        self.wire = later;
        let mut read = Vec::new();
        loop {
            let taken = self.end.give(&self.network);
            self.network.drain(..taken);
            let Some(mut pending) = self.prime() else { return Got::Error };
            if read.len() == room {
                return Got::Bytes(read);
            }
            let before = read.len();
            while pending > 0 {
                let bytes = self.end.read_only(room - read.len());
                assert!(!bytes.is_empty(), "{pending} bytes were announced");
                pending = pending.saturating_sub(bytes.len());
                read.extend(bytes);
                if read.len() == room {
                    break;
                }
                if pending == 0 {
                    match self.prime() {
                        Some(more) => pending = more,
                        None => return Got::Error,
                    }
                }
            }
            if fact(self.end.ssl, Fact::Shutdown) & ffi::SSL_RECEIVED_SHUTDOWN != 0 {
                // Here Tomcat forgets what it has read in this turn.
                read.truncate(before);
                return if read.is_empty() { Got::End } else { Got::Bytes(read) };
            }
            if read.len() == before && (taken == 0 || self.network.is_empty()) {
                break;
            }
            if self.network.is_empty() {
                break;
            }
        }
        if read.is_empty() { Got::Waits } else { Got::Bytes(read) }
    }

    /// Reads until there is an end, an error, or nothing more to come; returns what came before it.
    fn read_all(&mut self, room: usize) -> (Vec<u8>, Got) {
        let mut all = Vec::new();
        loop {
            match self.read(room) {
                Got::Bytes(bytes) => all.extend(bytes),
                Got::Waits if !self.wire.is_empty() => {}
                last => return (all, last),
            }
        }
    }
}

/// Adds a body to what a client has sent.
fn send(pair: &Pair, body: &[u8], wire: &mut Vec<u8>) {
    let mut rest = body;
    while !rest.is_empty() {
        let taken = usize::try_from(pair.client.write(rest)).unwrap();
        rest = &rest[taken..];
        while let Some(bytes) = pair.client.fetch(20_000) {
            wire.extend(bytes);
        }
    }
}

/// A pair whose server has read a request's head.
fn pair(protocol: i32) -> Pair {
    let pair = Pair::new(&client(protocol), &server(protocol), 4096);
    assert!(pair.handshake());
    assert_eq!(pair.send(pair.client, pair.server, b"PUT / HTTP/1.1\r\n\r\n", 100).len(), 18);
    pair
}

#[test]
fn a_body_arrives_whole_whatever_the_room() {
    let _library = library();
    for protocol in [TLS_1_2, TLS_1_3] {
        for (first, room) in
            [(16_384, 16_384), (12_592, 16_384), (100, 8192), (9, 1000), (20_000, 40_000)]
        {
            let pair = pair(protocol);
            let body = body(first + 700_000);
            let mut wire = Vec::new();
            send(&pair, &body[..first], &mut wire);
            // Records of all lengths.
            for (number, piece) in body[first..].chunks(30_000).enumerate() {
                if protocol == TLS_1_3 {
                    let client = get(pair.client.ssl).unwrap();
                    // SAFETY: the SSL is live, and this thread uses it.
                    let asked = unsafe { ffi::SSL_key_update(client.ssl(), (number % 2) as c_int) };
                    assert_eq!(asked, 1);
                }
                send(&pair, piece, &mut wire);
            }
            let mut channel = Channel { end: pair.server, wire: &wire, network: Vec::new() };
            assert_eq!(channel.read_all(room), (body, Got::Waits), "{protocol} {room}");
            assert!(channel.network.is_empty());
            pair.free();
        }
    }
}

#[test]
fn the_peers_end_comes_after_all_that_it_has_said() {
    let _library = library();
    for protocol in [TLS_1_2, TLS_1_3] {
        let pair = pair(protocol);
        let body = body(16_384 * 5);
        let mut wire = Vec::new();
        send(&pair, &body, &mut wire);
        pair.client.shut_down();
        wire.extend(pair.client.fetch(1000).unwrap());
        let mut channel = Channel { end: pair.server, wire: &wire, network: Vec::new() };
        // Each read fills the room: what Tomcat forgets with an end is nothing.
        assert_eq!(channel.read_all(8192), (body, Got::End));
        pair.free();
    }
}

#[test]
fn an_error_comes_after_all_that_was_right() {
    let _library = library();
    for protocol in [TLS_1_2, TLS_1_3] {
        for length in [16_384 * 4, 16_384 * 4 + 500] {
            let pair = pair(protocol);
            let body = body(length);
            let mut wire = Vec::new();
            send(&pair, &body, &mut wire);
            wire.extend(b"\x17\x03\x03\x00\x20 what is no ciphertext of anybody");
            let mut channel = Channel { end: pair.server, wire: &wire, network: Vec::new() };
            let (read, last) = channel.read_all(4096);
            assert_eq!(last, Got::Error);
            // A read that meets the error throws, with what it has read.
            assert!(body.starts_with(&read) && read.len() + 4096 >= length, "{}", read.len());
            pair.free();
        }
    }
}

#[test]
fn an_error_that_was_met_ahead_is_not_lost_in_a_handshake() {
    let _library = library();
    for protocol in [TLS_1_2, TLS_1_3] {
        let pair = pair(protocol);
        let body = body(5000);
        let mut wire = Vec::new();
        send(&pair, &body, &mut wire);
        wire.extend(b"\x17\x03\x03\x00\x20 what is no ciphertext of anybody");
        assert_eq!(pair.server.give(&wire), wire.len());
        assert_eq!(pair.server.read(16_384), body);
        assert_eq!(take_last(), 0);
        assert_eq!(pair.server.handshake(), -1);
        assert_ne!(take_last(), 0);
        pair.free();
    }
}
