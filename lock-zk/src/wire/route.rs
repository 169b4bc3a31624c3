//! The way of a client's sessions to its servers: addresses, encryption, and login.

use std::{fmt, time::Duration};

use lock_core::{Effect, Result};
use zookeeper_client::{Client, Connector};

use crate::{
    config::ZkConfig,
    error,
    wire::{
        dial::Dialer,
        login::{Login, SCHEME},
        tunnel::Tunnel,
    },
};

/// The most time for one connection.
const CONNECT: Duration = Duration::from_secs(3);

/// The way of all sessions of a client.
pub(crate) struct Route {
    /// Where the client crate connects to: the servers, or the tunnels to them.
    pub(crate) hosts: Vec<String>,
    /// The servers, as they are configured.
    pub(crate) servers: Vec<String>,
    chroot: String,
    given: Option<Connector>,
    silence: Option<Duration>,
    pub(crate) login: Option<Login>,
    pub(crate) dialer: Dialer,
    tunnels: Vec<Tunnel>,
}

impl Route {
    /// Opens the way, and reads the login and the certificates. Its tasks run in the current
    /// runtime.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or if this system allows no tunnels.
    pub(crate) async fn open(config: &ZkConfig) -> Result<Self> {
        let login = match (&config.user, &config.password) {
            (Some(user), Some(secret)) => Some(Login::new(user.clone(), secret.clone())?),
            _ => None,
        };
        let dialer = Dialer::new(&config.tls, config.timeouts.connect.unwrap_or(CONNECT))?;
        let servers = config.hosts.clone();
        let mut tunnels = Vec::new();
        for server in servers.iter().filter(|_| dialer.is_encrypted()) {
            let tunnel = Tunnel::open(server.clone(), dialer.clone()).await;
            tunnels.push(tunnel.map_err(|e| error::unavailable("connect", Effect::None, e))?);
        }
        let hosts = match tunnels.is_empty() {
            true => servers.clone(),
            false => tunnels.iter().map(|tunnel| tunnel.addr.to_string()).collect(),
        };
        let (chroot, given) = (config.chroot.clone(), config.given.clone());
        let silence = config.timeouts.request;
        Ok(Self { hosts, servers, chroot, given, silence, login, dialer, tunnels })
    }

    /// Returns the connector for sessions of this TTL, and the newest login that it has. It
    /// overrides the other options of a given connector: they would let a session end later than
    /// its deadlines, or make it useless.
    pub(crate) fn connector(&self, ttl: Duration) -> (Connector, Option<String>) {
        let mut connector = self.given.clone().unwrap_or_else(Client::connector);
        let logins = self.login.as_ref().map(Login::for_session).unwrap_or_default();
        for login in &logins {
            connector = connector.with_auth(SCHEME, login.as_bytes());
        }
        let connector = connector.with_session_timeout(ttl).with_readonly(false);
        let silence = self.silence.unwrap_or(Duration::ZERO);
        (connector.with_connection_timeout(silence), logins.last().cloned())
    }

    /// Returns the client crate's connect string. It repeats the hosts until there are at least
    /// this many.
    pub(crate) fn ensemble(&self, hosts: usize) -> String {
        let rounds = hosts.div_ceil(self.hosts.len());
        let all = vec![self.hosts.join(","); rounds].join(",");
        format!("{all}{}", self.chroot)
    }

    /// Returns why connections with TLS were not made last, or broke; nothing if none failed.
    pub(crate) fn failure(&self) -> Option<String> {
        let failures: Vec<_> = self.tunnels.iter().filter_map(Tunnel::failure).collect();
        (!failures.is_empty()).then(|| failures.join("; "))
    }

    /// Adds the reason of the tunnels to an error's text.
    pub(crate) fn with_failure(&self, text: &str) -> String {
        self.failure().map_or_else(|| text.to_owned(), |why| format!("{text}: {why}"))
    }
}

/// Without the connector, which may have a login.
impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("servers", &self.servers)
            .field("login", &self.login)
            .field("tunnels", &self.tunnels)
            .finish_non_exhaustive()
    }
}
