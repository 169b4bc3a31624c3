//! Connections that the driver makes by itself, from a configuration.

use std::time::Duration;

use etcd_client::{Client, ConnectOptions};
use lock_core::{Encryption, Tls};

use crate::{
    error::{Failure, FailureKind},
    wire::{login::Login, tls::encrypted},
};

/// How long a connection with a stream may be silent before it is asked whether it lives, and how
/// long the answer may take: so a watch on a dead connection is missed after 10 s, whatever the TTL.
/// etcd drops a connection that asks more often than every 5 s.
const PING_AFTER: Duration = Duration::from_secs(7);
const PING_LIMIT: Duration = Duration::from_secs(3);

/// What a configuration says about connections.
#[derive(Clone)]
pub(crate) struct Configured {
    pub(crate) endpoints: Vec<String>,
    pub(crate) tls: Tls,
    pub(crate) login: Option<Login>,
}

impl Configured {
    /// Returns a connection to this member. Reads the certificates and the login anew: all may have
    /// been replaced since.
    /// Fails if a file cannot be read, or the login was refused: now, or a moment ago with the same
    /// logins.
    pub(crate) async fn dial(
        &self,
        endpoint: &str,
        limit: Duration,
    ) -> std::result::Result<Client, Failure> {
        let options = self.options(limit)?;
        let Some(login) = &self.login else {
            return Ok(Client::connect([endpoint], Some(options)).await?);
        };
        let pairs = login.pairs()?;
        if let Some(refusal) = login.refusal(&pairs) {
            return Err(refusal);
        }
        let mut refused = Failure::senseless("no login");
        for pair in pairs.clone() {
            let options = options.clone().with_user(pair.user.clone(), pair.password.clone());
            match Client::connect([endpoint], Some(options)).await.map_err(Failure::from) {
                Ok(client) => {
                    login.accepted(pair);
                    return Ok(client);
                }
                Err(failure) if failure.is_login_refused() => refused = failure,
                Err(failure) => return Err(failure),
            }
        }
        login.refused(pairs, refused.clone());
        Err(refused)
    }

    fn options(&self, limit: Duration) -> std::result::Result<ConnectOptions, Failure> {
        // The client crate would repeat a refused login for each request. Here a login that has
        // expired leads to a new connection, which remembers what was refused.
        let options = for_locks(&ConnectOptions::new(), limit).with_auto_token_refresh(false);
        match self.tls.mode {
            Encryption::Off => Ok(options),
            _ => encrypted(options, &self.tls, limit)
                .map_err(|error| Failure::new(FailureKind::Refused, error)),
        }
    }
}

/// Sets the options that a connection for locks needs, whatever they were.
pub(super) fn for_locks(options: &ConnectOptions, limit: Duration) -> ConnectOptions {
    options
        .clone()
        // A member without a leader ends its streams instead of staying silent for ever.
        .with_require_leader(true)
        .with_connect_timeout(limit)
        .with_keep_alive(PING_AFTER, PING_LIMIT)
        // Pings without a stream make etcd drop the connection.
        .with_keep_alive_while_idle(false)
        .with_tcp_keepalive(Duration::from_secs(10))
        .with_auto_token_refresh(true)
}
