//! The import of a bad PKCS#12 store leaves an error that a later step of a connection fails for.

use std::time::SystemTime;

use sslsweep::hygiene::run;
use sslsweep_libssl::{Connection, Outcome as Class, Tls, faults};

use crate::common::{Expected, Idle, Outcome, contexts, told};

fn check(tls: &'static Tls) -> Outcome {
    let (server, client) = contexts(tls)?;
    let mut idle = Idle::between(&server, &client)?;

    faults::pkcs12_from_garbage(tls);
    assert_eq!(idle.read(), idle.misread(Class::Ssl));
    // A handshake under way clears the queue: it survives, and the evidence does not.
    let (mut new, _wire) = Connection::over_wire(&server, 4096)?;
    assert_ne!(tls.peek_error(), 0);
    assert_eq!(new.handshake(), Class::WantRead);
    assert_eq!(tls.peek_error(), 0);

    let since = SystemTime::now();
    run("import", || faults::pkcs12_from_garbage(tls));
    assert_eq!(run("read", || idle.read()), Class::WantRead);
    let (mut new, _wire) = Connection::over_wire(&server, 4096)?;
    assert_eq!(run("handshake", || new.handshake()), Class::WantRead);
    // Looked at before a handshake could wipe it out. What it costs to look: `sslsweep cost`.
    told(Expected { label: "import", reason: "too long", file: "asn1_lib.c", count: 1, since });
    Ok(())
}

crate::on_lines!(check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
