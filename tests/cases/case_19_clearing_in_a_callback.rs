//! The true cause of a failed handshake is lost: something that a callback does wipes the queue.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::time::SystemTime;

use sslsweep::hygiene::{ledger, run};
use sslsweep::libcrypto::FULL;
use sslsweep_libssl::{Context, Outcome as Class, Pair, Tls, faults};

use crate::common::{Expected, Outcome, identity, told};

/// Callbacks carry no argument of ours.
static LIBRARY: OnceLock<&Tls> = OnceLock::new();

/// The reason for which the callback refuses the certificate, queued for the application to find.
fn refuse(tls: &'static Tls) {
    tls.library().raise(128, 42, c"application-verify", 7);
}

/// Refuses, and then reads a certificate file by way of code that clears up behind itself.
extern "C" fn clears(_preverify_ok: c_int, _store: *mut c_void) -> c_int {
    if let Some(tls) = LIBRARY.get() {
        refuse(tls);
        faults::pem_junk(tls);
        tls.clear_errors();
    }
    0
}

/// The same with a guard in place of the clearing.
extern "C" fn guards(_preverify_ok: c_int, _store: *mut c_void) -> c_int {
    if let Some(tls) = LIBRARY.get() {
        refuse(tls);
        run("read a certificate in a callback", || faults::pem_junk(tls));
    }
    0
}

fn check(tls: &'static Tls) -> Outcome {
    assert!(LIBRARY.set(tls).is_ok());
    let identity = identity()?;
    let server = Context::server(tls)?
        .certificate(identity.certificate.as_bytes())?
        .private_key(identity.key.as_bytes())?
        .build();
    let handshake = |callback| -> Outcome<Class> {
        let client = Context::client(tls)?.verify_with(callback).build();
        let mut pair = Pair::new(&server, &client)?;
        loop {
            let step = pair.client.handshake();
            if step != Class::WantRead {
                return Ok(step);
            }
            let _ = pair.server.handshake();
        }
    };
    let causes = || {
        let mut causes = 0;
        tls.library().entries(0..FULL, &mut |entry| {
            causes += u32::from(entry.file == Some(c"application-verify"));
        });
        causes
    };

    assert_eq!(handshake(clears)?, Class::Ssl);
    assert_eq!(causes(), 0, "the handshake has failed, and nobody knows why");
    tls.clear_errors();

    let since = SystemTime::now();
    run("connect", || -> Outcome {
        assert_eq!(handshake(guards)?, Class::Ssl);
        assert_eq!(causes(), 1, "left by the callback, for the application");
        Ok(())
    })?;
    let label = "read a certificate in a callback";
    told(Expected { label, reason: "no start line", file: "pem_lib.c", count: 1, since });
    told(Expected {
        label: "connect",
        reason: "certificate verify failed",
        file: ".c",
        count: 1,
        since,
    });
    let ledger = ledger();
    let connect = ledger.label("connect").ok_or("no connect")?;
    assert!(connect.entries.iter().any(|entry| entry.last.file == "application-verify"));
    assert!(!connect.entries.iter().any(|entry| entry.reason.contains("no start line")));
    Ok(())
}

crate::on_lines!(check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
