//! Encrypted connections: whom to trust, in the words that every PostgreSQL client knows.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acta_core::{Error, Result};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

/// How a connection is encrypted, and whose server is trusted: `sslmode` and `sslrootcert` of the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tls {
    pub(super) mode: SslMode,
    /// The server's certificate must hold, and be in its host's name.
    is_verified: bool,
    /// Who may have signed it; whoever the system trusts, if nothing is said.
    roots: Option<PathBuf>,
}

impl Tls {
    /// What these say: as libpq does, but that nothing is verified by halves.
    pub(super) fn new(mode: Option<&str>, roots: Option<&str>) -> Result<Self> {
        let (mode, is_verified) = match mode {
            Some("disable") => (SslMode::Disable, false),
            None | Some("prefer") => (SslMode::Prefer, false),
            Some("require") => (SslMode::Require, roots.is_some()),
            Some("verify-full") => (SslMode::Require, true),
            Some(other) => {
                let why = "is none of disable, prefer, require, verify-full";
                return Err(Error::invalid("sslmode", other, why));
            }
        };
        Ok(Self { mode, is_verified, roots: roots.map(PathBuf::from) })
    }

    /// What opens connections.
    pub(super) fn connector(&self) -> Result<MakeRustlsConnect> {
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let config = config.map_err(|fault| Error::invalid("TLS", "", fault.to_string()))?;
        let config = if self.is_verified {
            config.with_root_certificates(self.trusted()?)
        } else {
            config.dangerous().with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        };
        Ok(MakeRustlsConnect::new(config.with_no_client_auth()))
    }

    fn trusted(&self) -> Result<RootCertStore> {
        let mut trusted = RootCertStore::empty();
        match &self.roots {
            Some(path) => {
                for certificate in read(path)? {
                    let added = trusted.add(certificate);
                    added.map_err(|fault| unreadable(path, fault))?;
                }
                if trusted.is_empty() {
                    return Err(unreadable(path, "holds no certificate in PEM form"));
                }
            }
            // What can't be read of the system's is as good as not trusted.
            None => {
                trusted.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
        }
        Ok(trusted)
    }
}

fn read(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let certificates = CertificateDer::pem_file_iter(path).map_err(|fault| unreadable(path, fault))?;
    certificates.collect::<std::result::Result<_, _>>().map_err(|fault| unreadable(path, fault))
}

fn unreadable(path: &Path, why: impl std::fmt::Display) -> Error {
    Error::Unreadable { place: path.display().to_string(), why: why.to_string() }
}

/// Trusts whoever answers: the connection is encrypted, but not against somebody in between.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
