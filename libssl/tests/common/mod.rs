//! What the tests share: a certificate, and contexts made with it.

use sslsweep_libssl::{Context, Tls};

pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

pub struct Identity {
    pub certificate: String,
    pub key: String,
}

pub fn identity() -> Outcome<Identity> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    Ok(Identity { certificate: made.cert.pem(), key: made.signing_key.serialize_pem() })
}

#[allow(dead_code, reason = "not every test file makes contexts")]
pub fn contexts(tls: &'static Tls) -> Outcome<(Context, Context)> {
    let identity = identity()?;
    let server = Context::server(tls)?
        .certificate(identity.certificate.as_bytes())?
        .private_key(identity.key.as_bytes())?
        .build();
    Ok((server, Context::client(tls)?.build()))
}
