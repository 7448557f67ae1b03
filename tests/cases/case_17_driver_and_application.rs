//! A database driver's failed TLS shutdown appears in an unrelated call of the application.

use std::time::SystemTime;

use sslsweep::hygiene::{Policy, Task, ledger, run};
use sslsweep_libssl::{Connection, Memory, Outcome as Class, Tls};

use crate::common::{Expected, Outcome, contexts, told};

/// What the application does after its own calls: any error in the queue must be of its own.
fn application_checks(tls: &'static Tls) -> Option<u64> {
    Some(tls.peek_error()).filter(|code| *code != 0)
}

fn check(tls: &'static Tls) -> Outcome {
    let (_, client) = contexts(tls)?;
    // A connection of the driver's whose handshake has not ended yet. Its steps are made before: a
    // handshake under way clears the queue by itself.
    let (mut connection, _wire) = Connection::over_wire(&client, 4096)?;
    assert_eq!(connection.handshake(), Class::WantRead);
    let driver = |connection: &mut Connection<Memory>| {
        assert_eq!(connection.shutdown_raw().value(), -1);
    };

    driver(&mut connection);
    assert!(application_checks(tls).is_some(), "should not happen");
    tls.clear_errors();

    let since = SystemTime::now();
    run("driver", || driver(&mut connection));
    assert_eq!(application_checks(tls), None);
    let reason = "shutdown while in init";
    told(Expected { label: "driver", reason, file: "ssl_lib.c", count: 1, since });

    // The application has an error of its own that it has not read yet.
    assert!(tls.library().raise(128, 3, c"application", 1));
    let own = application_checks(tls);
    run(Task::new("quiet driver").policy(Policy::RollBack), || driver(&mut connection));
    assert_eq!((application_checks(tls), tls.library().depth()), (own, 1));
    tls.clear_errors();
    told(Expected { label: "quiet driver", reason, file: "ssl_lib.c", count: 1, since });
    assert_eq!(ledger().arrivals(), 0, "the application's own error is nobody's business");
    Ok(())
}

crate::on_lines!(check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
