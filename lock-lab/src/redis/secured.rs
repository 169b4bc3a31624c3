//! TLS and logins of Redis and of sentinels.

use std::{ffi::OsString, fs, path::Path};

use crate::{LabError, tls::Tls};

/// The password of the default user, with which the lab itself logs in when it demands logins.
pub(super) const LAB_PASSWORD: &str = "lock-lab";
/// The file with the authority of clients and of other nodes.
const PEERS: &str = "tls-peers.pem";

#[derive(Clone)]
pub(super) struct Login {
    pub(super) user: String,
    pub(super) password: String,
}

/// Writes the files for TLS, and returns the settings: names and values. `port` is the one with TLS,
/// `nodes` the authority of the nodes to which it speaks TLS, too.
pub(super) fn settings(
    tls: &Tls,
    nodes: Option<&str>,
    home: &Path,
    port: u16,
) -> Result<Vec<[String; 2]>, LabError> {
    tls.write(home)?;
    let file = |name: &str| home.join(name).display().to_string();
    let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    let mut settings = vec![
        ["tls-port".to_owned(), port.to_string()],
        ["tls-cert-file".to_owned(), file(Tls::CERTIFICATE)],
        ["tls-key-file".to_owned(), file(Tls::KEY)],
        ["tls-auth-clients".to_owned(), yes_no(tls.clients.is_some())],
        ["tls-replication".to_owned(), yes_no(nodes.is_some())],
        ["tls-cluster".to_owned(), yes_no(nodes.is_some())],
    ];
    if let Some(authority) = nodes.or(tls.clients.as_deref()) {
        fs::write(home.join(PEERS), authority).map_err(LabError::io(format!("writing {PEERS}")))?;
        settings.push(["tls-ca-cert-file".to_owned(), file(PEERS)]);
    }
    Ok(settings)
}

impl Login {
    /// The arguments of the setting `user`.
    pub(super) fn rule(&self) -> [String; 6] {
        let password = format!(">{}", self.password);
        [&self.user, "on", &password, "~*", "&*", "+@all"].map(str::to_owned)
    }

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
