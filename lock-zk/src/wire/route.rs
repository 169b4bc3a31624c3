//! The way of a client's sessions to its servers: addresses, encryption, and login.

use std::{fmt, io, sync::Arc, time::Duration};

use lock_core::{Effect, Reach, Result};
use zookeeper_client::{Client, Connector, Error as ZkError};

use crate::{
    config::ZkConfig,
    error,
    wire::{
        dial::Dialer,
        login::{Login, SCHEME},
        questions,
        tunnel::Tunnel,
    },
};

/// The most time for one connection.
const CONNECT: Duration = Duration::from_secs(3);
/// A server that is silent for less is not left for another one: it may be busy.
const LEAST_SILENCE: Duration = Duration::from_millis(500);

/// The way of all sessions of a client.
pub(crate) struct Route {
    /// Where the client crate connects to: the servers, or the tunnels to them.
    pub(crate) hosts: Vec<String>,
    pub(crate) config: Arc<ZkConfig>,
    pub(crate) login: Option<Login>,
    pub(crate) dialer: Dialer,
    tunnels: Vec<Tunnel>,
    pub(crate) reach: Reach,
}

impl Route {
    /// Opens the way, and reads the login and the certificates. Its tasks run in the current
    /// runtime.
    pub(crate) async fn open(config: ZkConfig) -> Result<Self> {
        let login = match (&config.user, &config.password) {
            (Some(user), Some(secret)) => Some(Login::new(user.clone(), secret.clone())?),
            _ => None,
        };
        let dialer = Dialer::new(&config.tls, config.timeouts.connect.unwrap_or(CONNECT))?;
        let mut tunnels = Vec::new();
        for server in config.hosts.iter().filter(|_| dialer.is_encrypted()) {
            let tunnel = Tunnel::open(server.clone(), dialer.clone()).await;
            tunnels.push(tunnel.map_err(|e| error::unavailable("connect", Effect::None, e))?);
        }
        let hosts = match tunnels.is_empty() {
            true => config.hosts.clone(),
            false => tunnels.iter().map(|tunnel| tunnel.addr.to_string()).collect(),
        };
        let (config, reach) = (Arc::new(config), Reach::default());
        Ok(Self { hosts, config, login, dialer, tunnels, reach })
    }

    /// Opens a session at any of the hosts. Returns also the newest login that it has.
    ///
    /// The client crate tries them one after the other in random order, and a silent one holds it
    /// up. So if there are several, they are asked first for a sign of life, and the silent ones are
    /// given to the crate once only. One session is opened: a server that is slow, such as after an
    /// outage, must not get more of them. So if none gives a sign of life at once, the crate's own,
    /// longer limit counts: each handshake that it gives up leaves a session at the server.
    pub(crate) async fn connect(&self, ttl: Duration) -> Result<(Client, Option<String>), ZkError> {
        let silent = questions::silent(&self.config.hosts, &self.dialer).await;
        let (connector, login) = self.connector(ttl, silent.is_none());
        let client = connector.connect(&self.ensemble(ttl, &silent.unwrap_or_default())).await?;
        Ok((client, login))
    }

    /// Asks all servers with a command of four letters: see [`questions::ask_all`].
    pub(crate) async fn ask_all(&self, command: &[u8; 4]) -> Vec<io::Result<String>> {
        questions::ask_all(&self.config.hosts, &self.dialer, command).await
    }

    /// Returns the connector for sessions of this TTL, and the newest login that it has. It
    /// overrides the other options of a given connector: they would let a session end later than
    /// its deadlines, or make it useless.
    fn connector(&self, ttl: Duration, slow: bool) -> (Connector, Option<String>) {
        let given = self.config.given.as_ref().map(|given| given.0.clone());
        let mut connector = given.unwrap_or_else(Client::connector);
        let logins = self.login.as_ref().map(Login::for_session).unwrap_or_default();
        for login in &logins {
            connector = connector.with_auth(SCHEME, login.as_bytes());
        }
        let connector = connector.with_session_timeout(ttl).with_readonly(false);
        let hosts = if slow { 1 } else { self.hosts.len() };
        let silence = self.config.timeouts.request.unwrap_or_else(|| silence(ttl, hosts));
        (connector.with_connection_timeout(silence), logins.last().cloned())
    }

    /// Returns the client crate's connect string for sessions of this TTL. It has the silent ones
    /// of the hosts once only.
    fn ensemble(&self, ttl: Duration, silent: &[usize]) -> String {
        let others = self.hosts.iter().enumerate().filter(|(host, _)| !silent.contains(host));
        let others: Vec<_> = others.map(|(_, host)| host.as_str()).collect();
        let mut all = vec![self.hosts.join(",")];
        all.resize(rounds(ttl, self.hosts.len()), others.join(","));
        format!("{}{}", all.join(","), self.config.chroot)
    }

    /// Adds to an error's text why connections with TLS were not made last, or broke.
    pub(crate) fn with_failure(&self, text: &str) -> String {
        let failures: Vec<_> = self.tunnels.iter().filter_map(Tunnel::failure).collect();
        match failures.as_slice() {
            [] => text.to_owned(),
            failures => format!("{text}: {}", failures.join("; ")),
        }
    }
}

/// Returns how often each host is given to the client crate.
///
/// When no host can be reached, its pauses double from one round over all hosts to the next. So a
/// single host that was away for a moment longer than half the TTL would be tried again too late
/// for the session. Within a round the pauses grow slowly. So each host is given several times:
/// that keeps the longest pause within a TTL short, and outages of up to 3/4 of the TTL are
/// survived.
fn rounds(ttl: Duration, hosts: usize) -> usize {
    // A TTL is at most some minutes.
    let pacing = 6 + usize::try_from(ttl.as_secs() / 2).unwrap_or(0).min(30);
    (pacing / hosts.max(1)).max(1)
}

/// Returns how long a server may be silent before it is left; zero for the client crate's own
/// limit, two fifths of the TTL.
///
/// The crate then tries one host after the other, in random order, and this is also its limit for
/// each of them. A host that is cut off swallows packets, and it is given several times. So the
/// limit is so short that half of the TTL is enough to notice the silence and to try all silent
/// hosts of a minority in vain: from six ticks on, more is left before the deadline.
fn silence(ttl: Duration, hosts: usize) -> Duration {
    if hosts < 2 {
        return Duration::ZERO;
    }
    let in_vain = ((hosts - 1) / 2).max(1) * rounds(ttl, hosts);
    let limit = ttl / u32::try_from(2 * (1 + in_vain)).unwrap_or(u32::MAX);
    limit.max(LEAST_SILENCE).min(ttl * 2 / 5)
}

/// Without the connector, which may have a login.
impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route")
            .field("servers", &self.config.hosts)
            .field("login", &self.login)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From six ticks on, the deadline is 11/20 of the TTL or more after a server fell silent.
    #[test]
    fn a_minority_of_silent_hosts_is_left_within_the_deadline() {
        for (millis, hosts) in [(4000, 3), (8000, 3), (15_000, 3), (60_000, 3), (15_000, 5)] {
            let ttl = Duration::from_millis(millis);
            let (silence, rounds) = (silence(ttl, hosts), rounds(ttl, hosts));
            let in_vain = u32::try_from((hosts - 1) / 2 * rounds).unwrap();
            // The crate looks eight times per limit.
            let left = silence * 9 / 8 + silence * in_vain;
            assert!(left <= ttl * 11 / 20, "{ttl:?} of {hosts}: {silence:?}, {rounds} rounds");
            assert!(silence >= LEAST_SILENCE && silence <= Duration::from_secs(3), "{silence:?}");
        }
        for millis in [500, 1000, 2000] {
            let ttl = Duration::from_millis(millis);
            assert!(silence(ttl, 3) <= ttl * 2 / 5);
        }
        assert_eq!(silence(Duration::from_secs(15), 1), Duration::ZERO);
    }
}
