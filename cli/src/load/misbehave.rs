//! Clients that misbehave, as a public server meets them: each leaves errors on the thread that served it.
//!
//! Each kind uses a connection of its own. Healthy connections are never touched: what happens to them
//! afterwards is the server's doing.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::body::Bodies;
use super::client::{Fault, Target, cut};

/// How long a misbehaving client waits for the server's reaction.
const REACTION: Duration = Duration::from_secs(1);

/// What a misbehaving client does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes that are no ClientHello.
    Garbage,
    /// A ClientHello that offers only SSL 3.0 or TLS 1.0.
    RefusedProtocol,
    /// Ends the connection after the server's first flight.
    CutInHandshake,
    /// Ends the connection after half of a body.
    CutInBody,
}

impl Kind {
    /// All kinds, in the order in which they take turns.
    pub const ALL: [Self; 4] =
        [Self::Garbage, Self::RefusedProtocol, Self::CutInHandshake, Self::CutInBody];

    /// The kind of misbehaving client number `n`.
    pub fn turn(n: u64) -> Self {
        Self::ALL[(n % 4) as usize]
    }
}

/// Lets misbehaving client number `n` do its worst. What the server did to it while it still behaved is given
/// back: until a client cuts its body, it is as good as any.
///
/// # Errors
/// When the server could not be reached at all (a server that cuts a misbehaving client off is right), or does
/// not answer.
pub fn misbehave(
    target: &Target,
    bodies: &Bodies,
    n: u64,
    length: u64,
) -> Result<Option<Fault>, Fault> {
    // Turns of the variants are independent of the turns of the kinds.
    let variant = n / 4;
    match Kind::turn(n) {
        Kind::Garbage => speak(target.tcp()?, garbage(variant)),
        Kind::RefusedProtocol => speak(target.tcp()?, &old_hello(variant)),
        Kind::CutInHandshake => cut_in_handshake(target, variant % 2 == 1)?,
        Kind::CutInBody => match target.connect() {
            Ok(connection) => {
                let mut body = bodies.body(u64::MAX - n, length);
                let _ = connection.cut_in_body(&mut body, length, variant % 2 == 1);
            }
            Err(closed @ Fault::Closed(_)) => return Ok(Some(closed)),
            Err(fault) => return Err(fault),
        },
    }
    Ok(None)
}

/// Sends `bytes` and waits for the server to hang up, so that its reaction belongs to this moment of the run.
fn speak(mut socket: TcpStream, bytes: &[u8]) {
    let spoken = socket.set_read_timeout(Some(REACTION)).and_then(|()| socket.write_all(bytes));
    let mut sink = [0; 512];
    while spoken.is_ok() && socket.read(&mut sink).is_ok_and(|n| n > 0) {}
}

fn cut_in_handshake(target: &Target, reset: bool) -> Result<(), Fault> {
    let mut socket = target.tcp()?;
    let mut tls = target.tls()?;
    let hello = socket.set_read_timeout(Some(REACTION)).and_then(|()| tls.write_tls(&mut socket));
    if hello.is_ok() {
        let _ = socket.read(&mut [0; 16 << 10]);
    }
    let _ = cut(socket, reset);
    Ok(())
}

fn garbage(variant: u64) -> &'static [u8] {
    match variant % 3 {
        // Plain HTTP on the TLS port.
        0 => b"GET / HTTP/1.0\r\n\r\n",
        // No protocol at all.
        1 => b"\x00\x9c\x13\xf7\xe2\x41\x08\xbb\x5d\x91\x2a\xc6\x77\x30\xee\x04\x00\x9c\x13\xf7",
        // A handshake record whose contents are not a handshake.
        _ => {
            b"\x16\x03\x01\x00\x10\xff\x00\x00\x0c\xde\xad\xbe\xef\xde\xad\xbe\xef\xde\xad\xbe\xef"
        }
    }
}

/// A ClientHello of 2006: SSL 3.0 or TLS 1.0, cipher suites of the time, no extension.
fn old_hello(variant: u64) -> Vec<u8> {
    let version: [u8; 2] = if variant.is_multiple_of(2) { [3, 1] } else { [3, 0] };
    let suites: [u8; 12] = [0xc0, 0x0a, 0xc0, 0x09, 0xc0, 0x14, 0xc0, 0x13, 0x00, 0x35, 0x00, 0x2f];
    let mut hello = Vec::from(version);
    hello.extend((0..32_u8).map(|byte| byte.wrapping_mul(37)));
    hello.push(0);
    hello.extend([0, suites.len() as u8]);
    hello.extend(suites);
    hello.extend([1, 0]);
    let mut record =
        vec![0x16, version[0], version[1], 0, hello.len() as u8 + 4, 1, 0, 0, hello.len() as u8];
    record.extend(hello);
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_take_turns_evenly() {
        for kind in Kind::ALL {
            assert_eq!((0..400).filter(|n| Kind::turn(*n) == kind).count(), 100);
        }
    }

    #[test]
    fn the_old_hello_is_well_formed() {
        for variant in 0..2 {
            let record = old_hello(variant);
            assert_eq!(usize::from(record[4]), record.len() - 5, "record length");
            assert_eq!(usize::from(record[8]), record.len() - 9, "handshake length");
            assert_eq!(record[9..11], record[1..3], "version");
        }
    }
}
