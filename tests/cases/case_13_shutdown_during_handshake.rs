//! Closing a connection whose handshake has not ended leaves an error for the next user of the thread.

use std::time::SystemTime;

use sslsweep::hygiene::{ledger, run};
use sslsweep_libssl::{Connection, Outcome as Class, Tls};

use crate::common::{Expected, Idle, Outcome, contexts, told};

fn check(tls: &'static Tls) -> Outcome {
    let (server, client) = contexts(tls)?;
    let mut idle = Idle::between(&server, &client)?;
    let close = || -> Outcome {
        let (mut unfinished, _wire) = Connection::over_wire(&client, 4096)?;
        assert_eq!(unfinished.handshake(), Class::WantRead);
        assert_eq!(unfinished.shutdown_raw().value(), -1);
        Ok(())
    };

    close()?;
    assert_eq!(idle.read(), idle.misread(Class::Ssl));
    tls.clear_errors();

    let since = SystemTime::now();
    run("close", close)?;
    assert_eq!(run("read", || idle.read()), Class::WantRead);
    let reason = "shutdown while in init";
    told(Expected { label: "close", reason, file: "ssl_lib.c", count: 1, since });
    assert_eq!(ledger().label("read").map(|read| read.dirty_tasks), Some(0));
    Ok(())
}

crate::on_lines!(check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
