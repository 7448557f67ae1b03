//! The clients of an ageing server: rustls, which has no OpenSSL state that could mix with the
//! server's. They accept the server's own certificate and no other, whatever names are in it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};

/// Bytes of a body.
const BODY: usize = 4096;
/// A server that needs longer for a small PUT is stuck.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a small PUT failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("the certificate is not PEM: {0}")]
    Certificate(#[from] rustls::pki_types::pem::Error),
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("the answer is {0:?}")]
    Answer(String),
}

/// A client; sessions are resumed, as those of real clients are.
#[derive(Debug, Clone)]
pub struct Client {
    config: Arc<ClientConfig>,
}

impl Client {
    /// # Errors
    /// The certificate is not PEM.
    pub fn new(certificate: &str) -> Result<Self, ClientError> {
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes())?;
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier = Arc::new(Known { certificate, provider: Arc::clone(&provider) });
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(verifier)
            .with_no_client_auth();
        Ok(Self { config: Arc::new(config) })
    }

    /// Sends one small PUT over a connection of its own, and checks the answer.
    ///
    /// # Errors
    /// The server did not take it.
    pub fn put(&self, address: SocketAddr) -> Result<(), ClientError> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(address.ip().into());
        let connection = ClientConnection::new(Arc::clone(&self.config), name)?;
        let mut tls = StreamOwned::new(connection, stream);
        let mut request = format!(
            "PUT /age HTTP/1.1\r\nHost: {address}\r\nContent-Length: {BODY}\r\n\
             Connection: close\r\n\r\n"
        )
        .into_bytes();
        let body = [b'a'; BODY];
        request.extend_from_slice(&body);
        tls.write_all(&request)?;
        let mut answer = Vec::new();
        tls.read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer);
        let hash = format!("{:016x}", xxhash_rust::xxh3::xxh3_64(&body));
        if answer.starts_with("HTTP/1.1 200 ") && answer.contains(&hash) {
            return Ok(());
        }
        Err(ClientError::Answer(answer.into_owned()))
    }
}

/// Knows one certificate.
#[derive(Debug)]
struct Known {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Known {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if *certificate == self.certificate {
            return Ok(ServerCertVerified::assertion());
        }
        Err(rustls::CertificateError::UnknownIssuer.into())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
