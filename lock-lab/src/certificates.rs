//! Certificates for tests: an authority, and what it issues.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};
use tempfile::TempDir;

use crate::LabError;

/// A private authority for certificates. Its files are deleted with it.
///
/// ```
/// # fn main() -> Result<(), lock_lab::LabError> {
/// use lock_lab::Authority;
///
/// let authority = Authority::new()?;
/// let server = authority.server(&["127.0.0.1", "lab.test"])?;
/// let builder = lock_lab::Etcd::builder().tls(server.certificate(), server.key());
/// assert!(authority.file().is_file());
/// # Ok(()) }
/// ```
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    file: PathBuf,
    folder: TempDir,
}

/// A certificate and its key. `Debug` hides them.
pub struct Issued {
    certificate: String,
    key: String,
    files: [PathBuf; 2],
}

impl Authority {
    /// Makes an authority that nobody knows yet.
    pub fn new() -> Result<Self, LabError> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let name = format!("lock-lab {}", uuid::Uuid::new_v4());
        params.distinguished_name.push(DnType::CommonName, name);
        let issuer = key().and_then(|key| CertifiedIssuer::self_signed(params, key));
        let issuer = issuer.map_err(refused)?;
        let folder = tempfile::Builder::new().prefix("lock-lab-ca-").tempdir();
        let folder = folder.map_err(LabError::io("making a folder for certificates"))?;
        let file = folder.path().join("ca.pem");
        write(&file, &issuer.pem())?;
        Ok(Self { issuer, file, folder })
    }

    /// Returns the file with its own certificate, which clients trust.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Returns its own certificate as PEM.
    pub fn certificate(&self) -> String {
        self.issuer.pem()
    }

    /// Issues a certificate for a server with these names and addresses.
    pub fn server(&self, hosts: &[&str]) -> Result<Issued, LabError> {
        self.issue("server", named(hosts)?)
    }

    /// Same as [`server`](Self::server), but its time was over in 2001.
    pub fn expired(&self, hosts: &[&str]) -> Result<Issued, LabError> {
        let mut params = named(hosts)?;
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(2001, 1, 1);
        self.issue("expired", params)
    }

    /// Issues a certificate for a client whose common name is `user`.
    pub fn client(&self, user: &str) -> Result<Issued, LabError> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user);
        params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        self.issue(user, params)
    }

    fn issue(&self, name: &str, params: CertificateParams) -> Result<Issued, LabError> {
        let issued = key().and_then(|key| Ok((params.signed_by(&key, &self.issuer)?.pem(), key)));
        let (certificate, key) = issued.map_err(refused)?;
        let key = key.serialize_pem();
        let file = |end: &str| self.folder.path().join(format!("{name}.{end}"));
        let files = [file("pem"), file("key")];
        write(&files[0], &certificate)?;
        write(&files[1], &key)?;
        Ok(Issued { certificate, key, files })
    }
}

impl Issued {
    /// Returns the certificate as PEM.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Returns the key as PEM.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns the files with the certificate and with the key. They live as long as the authority.
    pub fn files(&self) -> [&Path; 2] {
        self.files.each_ref().map(PathBuf::as_path)
    }
}

fn named(hosts: &[&str]) -> Result<CertificateParams, LabError> {
    let hosts: Vec<_> = hosts.iter().map(|&host| host.to_owned()).collect();
    CertificateParams::new(hosts).map_err(refused)
}

fn key() -> Result<KeyPair, rcgen::Error> {
    KeyPair::generate()
}

fn refused(error: rcgen::Error) -> LabError {
    LabError::io("making a certificate")(io::Error::other(error))
}

fn write(file: &Path, text: &str) -> Result<(), LabError> {
    fs::write(file, text).map_err(LabError::io(format!("writing {}", file.display())))
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Authority").field(&self.file).finish()
    }
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Issued").field(&self.files).finish()
    }
}
