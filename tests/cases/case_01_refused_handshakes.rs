//! A client that keeps offering a protocol the server refuses gets healthy connections closed.

use std::time::SystemTime;

use sslsweep::hygiene::{ledger, run};
use sslsweep::libcrypto::Line;
use sslsweep_libssl::{Connection, Context, ContextError, Outcome as Class, Protocol, Tls};

use crate::common::{Expected, Idle, Outcome, identity, told};

const ROUNDS: u64 = 100;

/// What a client sends that speaks nothing newer than TLS 1.1.
fn old_hello(tls: &'static Tls) -> Outcome<Vec<u8>> {
    let old =
        || Context::client(tls)?.min_protocol(Protocol::Tls1_0)?.max_protocol(Protocol::Tls1_1);
    // OpenSSL 3 offers nothing so old unless security is taken down; 1.0.2 has no such level.
    let old = match old()?.cipher_list("ALL:@SECLEVEL=0") {
        Ok(old) => old,
        Err(ContextError::Ciphers { .. }) => old()?,
        Err(error) => return Err(error.into()),
    };
    let (mut client, mut wire) = Connection::over_wire(&old.build(), 4096)?;
    assert_eq!(client.handshake(), Class::WantRead);
    let mut hello = vec![0; 4096];
    let length = wire.read(&mut hello);
    hello.truncate(length);
    Ok(hello)
}

fn check(tls: &'static Tls) -> Outcome {
    let identity = identity()?;
    let server = Context::server(tls)?
        .min_protocol(Protocol::Tls1_2)?
        .certificate(identity.certificate.as_bytes())?
        .private_key(identity.key.as_bytes())?
        .build();
    let hello = old_hello(tls)?;
    let accept = || -> Outcome<Class> {
        let (mut a, mut wire) = Connection::over_wire(&server, 4096)?;
        assert_eq!(wire.write(&hello), hello.len());
        Ok(a.handshake())
    };
    let mut b = Idle::between(&server, &Context::client(tls)?.build())?;

    for _ in 0..ROUNDS {
        assert_eq!(accept()?, Class::Ssl);
        assert_eq!(b.read(), b.misread(Class::Ssl));
        tls.clear_errors();
    }

    let since = SystemTime::now();
    for _ in 0..ROUNDS {
        assert_eq!(run("accept(A)", accept)?, Class::Ssl);
        assert_eq!(run("read(B)", || b.read()), Class::WantRead);
    }
    let library = tls.library();
    let left = told(Expected {
        label: "accept(A)",
        // 1.0.2 calls it unknown.
        reason: if library.line() == Line::V1_0 {
            "unknown protocol"
        } else {
            "unsupported protocol"
        },
        file: ".c",
        count: ROUNDS,
        since,
    });
    assert!(left.reason.to_lowercase().contains("ssl"), "{left:?}");
    assert!(!left.at_least && left.benign.is_none(), "{left:?}");
    let ledger = ledger();
    let accepts = ledger.label("accept(A)").ok_or("no accepts")?;
    assert_eq!((accepts.tasks, accepts.dirty_tasks, accepts.arrivals), (ROUNDS, ROUNDS, 0));
    let reads = ledger.label("read(B)").ok_or("no reads")?;
    assert_eq!((reads.tasks, reads.dirty_tasks, reads.arrivals), (ROUNDS, 0, 0));
    Ok(())
}

crate::on_lines!(check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
