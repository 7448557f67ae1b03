use super::pair::{BOTH_SAID, End, Pair, TLS_1_2, TLS_1_3, body, client, library, server};
use super::*;
use crate::context;
use crate::queue::take_last;
use crate::verify::{Level, set_for_connection};

const PROTOCOLS: [i32; 2] = [TLS_1_2, TLS_1_3];

/// `SSL_OP_ALLOW_CLIENT_RENEGOTIATION`, SSL_CTX_set_options(3).
const ALLOW_CLIENT_RENEGOTIATION: u64 = 1 << 8;

#[test]
fn bodies_come_out_as_they_went_in_however_they_are_cut() {
    let _library = library();
    for protocol in PROTOCOLS {
        for piece in [17, 4096, 17 * 1024] {
            let pair = Pair::new(&client(protocol), &server(protocol), piece);
            assert!(pair.handshake());
            for length in [1, 4096, 16 * 1024, 17 * 1024 - 1, 17 * 1024 + 1, 100_000] {
                for room in [1000, 16 * 1024] {
                    let body = body(length);
                    assert_eq!(pair.send(pair.client, pair.server, &body, room), body);
                    assert_eq!(pair.send(pair.server, pair.client, &body, room), body);
                }
            }
            assert_eq!(take_last(), 0);
            pair.free();
        }
    }
}

#[test]
fn java_is_told_what_was_agreed_on() {
    let _library = library();
    for (protocol, version) in [(TLS_1_2, c"TLSv1.2"), (TLS_1_3, c"TLSv1.3")] {
        let pair = Pair::new(&client(protocol), &server(protocol), 4096);
        assert!(get(pair.server.ssl).unwrap().in_handshake() != 0);
        assert!(pair.handshake());
        let server = get(pair.server.ssl).unwrap();
        assert_eq!(server.version(), version);
        assert!(server.cipher().to_string_lossy().contains("GCM"));
        assert_eq!(server.handshakes(), 1);
        assert_eq!(server.in_handshake(), 0);
        assert!(server.session_time().unwrap() > 1_600_000_000);
        drop(server);
        pair.free();
    }
}

#[test]
fn facts_that_java_asks_for_are_right_after_each_native() {
    let _library = library();
    let pair = Pair::new(&client(TLS_1_3), &server(TLS_1_3), 4096);
    assert!(pair.handshake());
    // Tickets of the server.
    assert!(pair.client.read(1).is_empty());
    assert_eq!(pair.client.write(&body(100)), 100);
    let waits = network_fact(pair.client.network, Fact::ToSend);
    assert!(waits > 100, "{waits}");
    pair.client.send_to(pair.server, 4096);
    assert_eq!(network_fact(pair.client.network, Fact::ToSend), 0);
    assert_eq!(pair.server.read(40).len(), 40);
    assert_eq!(fact(pair.server.ssl, Fact::Readable), 60);
    assert_eq!(pair.server.read(100).len(), 60);
    assert_eq!(fact(pair.server.ssl, Fact::Readable), 0);

    assert_eq!(fact(pair.server.ssl, Fact::Shutdown), 0);
    assert_eq!(pair.client.shut_down(), 0);
    pair.client.send_to(pair.server, 4096);
    assert!(pair.server.read(1).is_empty());
    assert_eq!(fact(pair.server.ssl, Fact::Shutdown), ffi::SSL_RECEIVED_SHUTDOWN);
    assert_eq!(pair.server.shut_down(), 1);
    assert_eq!(fact(pair.server.ssl, Fact::Shutdown), BOTH_SAID);
    pair.server.send_to(pair.client, 4096);
    assert!(pair.client.read(1).is_empty());
    assert_eq!(fact(pair.client.ssl, Fact::Shutdown), BOTH_SAID);
    assert_eq!(take_last(), 0);
    let ssl = pair.client.ssl;
    pair.free();
    assert_eq!(fact(ssl, Fact::Shutdown), 0);
}

#[test]
fn an_alert_is_an_error_for_java_and_leaves_the_queue_empty() {
    let _library = library();
    let pair = Pair::new(&client(TLS_1_3), &server(TLS_1_2), 4096);
    assert!(!pair.handshake());
    let error = take_last();
    let text = crate::queue::text(error.into());
    assert!(text.to_string_lossy().contains("unsupported protocol"), "{text:?}");
    pair.free();
}

#[test]
fn garbage_from_the_network_is_an_error_and_no_more() {
    let _library = library();
    let pair = Pair::new(&client(TLS_1_3), &server(TLS_1_3), 4096);
    assert!(pair.handshake());
    let garbage = *b"GET / HTTP/1.1\r\n\r\n";
    assert_eq!(pair.server.give(&garbage), 18);
    assert!(pair.server.read(10).is_empty());
    assert_ne!(take_last(), 0);
    pair.free();
}

/// Java counts on it that the C library takes 17 KiB at once, and no more than there is room for.
#[test]
fn what_has_no_room_is_not_taken() {
    let _library = library();
    let server = End::new(&server(TLS_1_3), true);
    let bytes = body(16 * 1024);
    for _ in 0..4 {
        assert_eq!(server.give(&bytes), 16 * 1024);
    }
    assert_eq!(server.give(&bytes[..1]), 0);
    server.free();
}

#[test]
fn a_client_renegotiates_where_it_may() {
    let _library = library();
    for allowed in [true, false] {
        let serves = server(TLS_1_2);
        if allowed {
            context::add_options(&serves, ALLOW_CLIENT_RENEGOTIATION);
        }
        let pair = Pair::new(&client(TLS_1_2), &serves, 4096);
        assert!(pair.handshake());
        assert_eq!(pair.client.renegotiate(), 1);
        for _ in 0..4 {
            pair.client.handshake();
            pair.exchange();
            assert!(pair.server.read(1).is_empty());
            pair.exchange();
        }
        assert_eq!(pair.client.handshakes(), if allowed { 2 } else { 1 });
        let error = take_last();
        assert_eq!(error == 0, allowed, "{:?}", crate::queue::text(error.into()));
        pair.free();
    }
}

#[test]
fn a_server_renegotiates() {
    let _library = library();
    let pair = Pair::new(&client(TLS_1_2), &server(TLS_1_2), 4096);
    assert!(pair.handshake());
    assert_eq!(pair.server.renegotiate(), 1);
    assert_eq!(get(pair.server.ssl).unwrap().renegotiate_pending(), 1);
    for _ in 0..4 {
        pair.server.handshake();
        pair.exchange();
        assert!(pair.client.read(1).is_empty());
        pair.exchange();
        assert!(pair.server.read(1).is_empty());
    }
    assert_eq!(get(pair.server.ssl).unwrap().renegotiate_pending(), 0);
    assert_eq!(pair.client.handshakes(), 2);
    let sent = body(5000);
    assert_eq!(pair.send(pair.client, pair.server, &sent, 4096), sent);
    pair.free();
}

#[test]
fn a_client_is_asked_for_a_certificate_after_the_handshake() {
    let _library = library();
    let asks = client(TLS_1_3);
    let (certificate, key) = super::pair::identity();
    crate::certificate::set_raw(&asks, &certificate, key.as_bytes(), 0).unwrap();
    let pair = Pair::new(&asks, &server(TLS_1_3), 4096);
    // SAFETY: the SSL is live, and this thread's.
    unsafe { ffi::SSL_set_post_handshake_auth(get(pair.client.ssl).unwrap().ssl(), 1) };
    assert!(pair.handshake());
    assert!(pair.client.read(1).is_empty());
    set_for_connection(&get(pair.server.ssl).unwrap(), Level::OptionalNoCa, 5);
    assert_eq!(get(pair.server.ssl).unwrap().ask_after_handshake(), 1);
    assert!(get(pair.server.ssl).unwrap().is_pha_in_progress());
    assert_eq!(pair.server.handshake(), 1);
    pair.exchange();
    assert!(pair.client.read(1).is_empty());
    pair.exchange();
    assert!(pair.server.read(1).is_empty());
    assert!(!get(pair.server.ssl).unwrap().is_pha_in_progress());
    assert_eq!(take_last(), 0);
    let sent = body(5000);
    assert_eq!(pair.send(pair.client, pair.server, &sent, 4096), sent);
    let shown = crate::verify::peer_certificate(&get(pair.server.ssl).unwrap());
    assert!(shown.is_some());
    pair.free();
}
