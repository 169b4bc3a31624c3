//! TLS and logins of Redis and of sentinels.

use std::{ffi::OsString, fs, path::Path};

use crate::{Authority, LabError, tls::Tls};

/// The password of the default user, with which the lab itself logs in when it demands logins.
pub(super) const LAB_PASSWORD: &str = "lock-lab";
/// The file with the authority of clients and of other nodes.
const PEERS: &str = "tls-peers.pem";

/// A server's certificate, and the authority of its peers.
#[derive(Clone, Debug)]
pub(super) struct Encryption {
    pub(super) tls: Tls,
    /// The authority of the nodes that it connects to, or of clients that must have certificates.
    pub(super) authority: Option<String>,
    pub(super) demands_certificates: bool,
    /// Whether it also encrypts what it sends to other nodes.
    pub(super) between_nodes: bool,
}

/// A user and a password.
#[derive(Clone)]
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: String,
}

impl Encryption {
    pub(super) fn new(certificate: String, key: String) -> Self {
        let tls = Tls { certificate, key };
        Self { tls, authority: None, demands_certificates: false, between_nodes: false }
    }

    /// The same for all nodes of a deployment on 127.0.0.1.
    pub(super) fn of_nodes(authority: &Authority) -> Result<Self, LabError> {
        let issued = authority.server(&["127.0.0.1"])?;
        let own = Self::new(issued.certificate().to_owned(), issued.key().to_owned());
        Ok(Self { authority: Some(authority.certificate()), between_nodes: true, ..own })
    }

    /// Writes the files, and returns the settings: names and values. `port` is the one with TLS.
    pub(super) fn settings(&self, home: &Path, port: u16) -> Result<Vec<[String; 2]>, LabError> {
        self.tls.write(home)?;
        let file = |name: &str| home.join(name).display().to_string();
        let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
        let mut settings = vec![
            ["tls-port".to_owned(), port.to_string()],
            ["tls-cert-file".to_owned(), file(Tls::CERTIFICATE)],
            ["tls-key-file".to_owned(), file(Tls::KEY)],
            ["tls-auth-clients".to_owned(), yes_no(self.demands_certificates)],
            ["tls-replication".to_owned(), yes_no(self.between_nodes)],
            ["tls-cluster".to_owned(), yes_no(self.between_nodes)],
        ];
        if let Some(authority) = &self.authority {
            fs::write(home.join(PEERS), authority)
                .map_err(LabError::io(format!("writing {PEERS}")))?;
            settings.push(["tls-ca-cert-file".to_owned(), file(PEERS)]);
        }
        Ok(settings)
    }
}

impl Login {
    /// The arguments of the setting `user`.
    pub(super) fn rule(&self) -> [String; 6] {
        let password = format!(">{}", self.password);
        [&self.user, "on", &password, "~*", "&*", "+@all"].map(str::to_owned)
    }

    /// The options of a command line.
    pub(super) fn options(&self) -> Vec<OsString> {
        let rule = self.rule().into_iter().map(OsString::from);
        std::iter::once("--user".into()).chain(rule).collect()
    }
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Login").field(&self.user).finish()
    }
}
