//! A read that would block is reported as a failure of the protocol or of the transport.

use std::time::SystemTime;

use sslsweep::hygiene::run;
use sslsweep_libssl::{Outcome as Class, Tls, faults};

use crate::common::{Expected, Idle, Outcome, told};

fn check(tls: &'static Tls) -> Outcome {
    let mut idle = Idle::new(tls)?;
    type Fault = fn(&'static Tls);
    let of: [(&'static str, Fault, Class); 2] =
        [("parse", faults::pem_junk, Class::Ssl), ("open", faults::sys_miss, Class::Syscall)];

    for (_, fault, believed) in of {
        fault(tls);
        assert_eq!(idle.read(), idle.misread(believed));
        // A handshake that is over does not clear: it is no proof of a clean queue.
        assert_eq!(idle.server.handshake(), Class::Done(1));
        assert_ne!(tls.peek_error(), 0);
        tls.clear_errors();
    }

    let since = SystemTime::now();
    for (label, fault, _) in of {
        run(label, || fault(tls));
        assert_eq!(run("read", || idle.read()), Class::WantRead);
    }
    let reason = "no start line";
    told(Expected { label: "parse", reason, file: "pem_lib.c", count: 1, since });
    // ERR_LIB_SYS, by its reason: the errno.
    let reason = "no such file or directory";
    told(Expected { label: "open", reason, file: "bss_file.c", count: 1, since });
    Ok(())
}

crate::on_lines!(check: on_1_0_2 on_1_1_1 on_3_0 on_3_6 on_4_0);
