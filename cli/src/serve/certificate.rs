//! The server's certificate: given, or made for this run.

use std::path::{Path, PathBuf};

/// Certificate and private key, in PEM form.
#[derive(Debug)]
pub struct Identity {
    pub certificate: String,
    pub key: String,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    #[error("cannot read {}: {source}; give a PEM file", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("no certificate could be made: {0}")]
    Make(#[from] rcgen::Error),
}

impl Identity {
    /// Reads the files of a pair.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, IdentityError> {
        let read = |path: &Path| {
            std::fs::read_to_string(path)
                .map_err(|source| IdentityError::Unreadable { path: path.to_path_buf(), source })
        };
        Ok(Self { certificate: read(certificate)?, key: read(key)? })
    }

    /// Makes a pair for this machine's own name: ECDSA on P-256, which every line can do.
    ///
    /// # Errors
    /// The key could not be made.
    pub fn make() -> Result<Self, IdentityError> {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
        let mut parameters = rcgen::CertificateParams::new(names)?;
        parameters.distinguished_name.push(rcgen::DnType::CommonName, "localhost");
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
        let certificate = parameters.self_signed(&key)?;
        Ok(Self { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}
