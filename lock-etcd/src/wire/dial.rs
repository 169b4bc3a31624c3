//! Making connections to etcd, or taking them from the caller, with TLS as the client crate has it,
//! and the order in which the members are tried.

use std::{
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use etcd_client::{Client, ConnectOptions};
use lock_core::{
    Encryption, Tls,
    keep::{
        self,
        errors::{self, invalid, no_tls},
        poison::lock,
        tls::speaks_tls,
    },
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    error::{Failure, FailureKind},
    wire::{login::Login, member::Member, tls_error},
};

/// How long a connection with a stream may be silent before it is asked whether it lives, and how
/// long the answer may take: so a watch on a dead connection is missed after 10 s, whatever the TTL.
/// etcd drops a connection that asks more often than every 5 s.
const PING_AFTER: Duration = Duration::from_secs(7);
const PING_LIMIT: Duration = Duration::from_secs(3);

/// The name of the one endpoint of a caller's client.
const GIVEN: &str = "(the caller's client)";

const EXPECTS_TLS: &str = "the server expects TLS on this port (tls=verify)";

/// The source of connections.
#[derive(Clone)]
pub(crate) enum Source {
    /// A configuration: each connection is to one member, and is ours.
    Configured(Box<Configured>),
    /// Same as [`Configured`](Self::Configured), with these endpoints and options of the caller.
    Options(Vec<String>, Box<ConnectOptions>),
    /// A client of the caller, shared, with its own endpoints.
    Client(Box<Client>),
}

impl Source {
    pub(crate) fn endpoints(&self) -> Vec<String> {
        match self {
            Self::Configured(configured) => configured.endpoints.clone(),
            Self::Options(endpoints, _) => endpoints.clone(),
            Self::Client(_) => vec![GIVEN.to_owned()],
        }
    }

    /// Whether it has certificates, which may have been replaced since the last connection.
    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self, Self::Configured(configured) if configured.tls.mode != Encryption::Off)
    }

    /// Whether each connection is another one. A client of the caller's stays the same.
    pub(crate) fn is_ours(&self) -> bool {
        !matches!(self, Self::Client(_))
    }

    /// The login that the driver itself uses.
    pub(crate) fn login(&self) -> Option<&Login> {
        match self {
            Self::Configured(configured) => configured.login.as_ref(),
            _ => None,
        }
    }

    /// Returns the failure of the first connection with its cause, if another connection shows it.
    pub(crate) async fn explain(
        &self,
        failure: Failure,
        endpoint: &str,
        limit: Duration,
    ) -> Failure {
        let Self::Configured(configured) = self else { return failure };
        if self.is_encrypted() && failure.is_reset() {
            let told = format!("{}: {failure}", tls_error::NO_TLS);
            return Failure::new(FailureKind::Refused, told);
        }
        if failure.kind != FailureKind::Broken {
            return failure;
        }
        let cause = match self.is_encrypted() {
            true => {
                tls_error::refusal(endpoint, &configured.tls, limit).await.map(tls_error::explained)
            }
            false => {
                let expected = speaks_tls(endpoint, limit).await;
                expected.then(|| format!("{EXPECTS_TLS}: {failure}"))
            }
        };
        cause.map_or(failure, |cause| Failure::new(FailureKind::Refused, cause))
    }

    /// Returns a connection to this member. With the caller's client it is the same connection
    /// again, after a new login if `login` is true.
    ///
    /// Without a login in the options this sends nothing, and cannot fail for a well-formed
    /// endpoint.
    /// Fails if the login was refused.
    pub(crate) async fn dial(
        &self,
        endpoint: &Arc<str>,
        generation: u64,
        login: bool,
        limit: Duration,
    ) -> Result<Member, Failure> {
        let client = match self {
            Self::Configured(configured) => configured.dial(endpoint, limit).await?,
            Self::Options(_, options) => {
                Box::pin(Client::connect([&**endpoint], Some(for_locks(options, limit)))).await?
            }
            Self::Client(client) => {
                if login {
                    client.refresh_token().await?;
                }
                Client::clone(client)
            }
        };
        let left = CancellationToken::new();
        Ok(Member { generation, endpoint: endpoint.clone(), client, left })
    }
}

/// The options would show the password.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.endpoints()).finish()
    }
}

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
    pub(crate) async fn dial(&self, endpoint: &str, limit: Duration) -> Result<Client, Failure> {
        let options = self.options(limit)?;
        let Some(login) = &self.login else {
            return Ok(Box::pin(Client::connect([endpoint], Some(options))).await?);
        };
        let pairs = login.pairs()?;
        if let Some(refusal) = login.refusal(&pairs) {
            return Err(refusal);
        }
        let mut refused = Failure::senseless("no login");
        for pair in pairs.clone() {
            let options = options.clone().with_user(pair.user.clone(), pair.password.clone());
            match Box::pin(Client::connect([endpoint], Some(options))).await.map_err(Failure::from)
            {
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

    fn options(&self, limit: Duration) -> Result<ConnectOptions, Failure> {
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

/// Refuses what a URL cannot have, files that are no certificates, and whatever asks for TLS in a
/// build without it.
pub(crate) fn check_tls(tls: &Tls, endpoints: &[String]) -> lock_core::Result<()> {
    keep::tls::check(tls)?;
    let encrypted = endpoints.iter().find(|endpoint| endpoint.starts_with("https://"));
    match encrypted.filter(|_| !cfg!(feature = "tls")) {
        Some(endpoint) => Err(invalid("hosts", endpoint, errors::NO_TLS)),
        // Another driver of the program may have brought what has checked it.
        None if tls.mode != Encryption::Off && !cfg!(feature = "tls") => Err(no_tls()),
        None => Ok(()),
    }
}

/// Adds the configuration in the client crate's form.
#[cfg(feature = "tls")]
fn encrypted(
    options: ConnectOptions,
    tls: &Tls,
    limit: Duration,
) -> lock_core::Result<ConnectOptions> {
    use etcd_client::{Certificate, Identity, TlsOptions};

    let mut form = TlsOptions::new().timeout(limit);
    form = match &tls.ca {
        Some(ca) => form.ca_certificate(Certificate::from_pem(ca.read("ca")?)),
        None => form.with_native_roots(),
    };
    if let (Some(cert), Some(key)) = (&tls.cert, &tls.key) {
        form = form.identity(Identity::from_pem(cert.read("cert")?, key.read("key")?));
    }
    Ok(options.with_tls(match &tls.server_name {
        Some(name) => form.domain_name(name),
        None => form,
    }))
}

#[cfg(not(feature = "tls"))]
fn encrypted(_: ConnectOptions, _: &Tls, _: Duration) -> lock_core::Result<ConnectOptions> {
    Err(no_tls())
}

/// Sets the options that a connection for locks needs, whatever they were.
fn for_locks(options: &ConnectOptions, limit: Duration) -> ConnectOptions {
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

/// The endpoints in the order of tries. Each client shuffles them, so that many clients with the
/// same URL spread over the members. An endpoint that failed is tried last.
pub(crate) struct Endpoints(Mutex<Vec<Arc<str>>>);

impl Endpoints {
    /// Puts endpoints in random order.
    pub(crate) fn shuffled(endpoints: &[String]) -> Self {
        let mut endpoints: Vec<Arc<str>> = endpoints.iter().map(|e| Arc::from(&**e)).collect();
        // A UUID is the random number at hand.
        endpoints.sort_by_cached_key(|_| Uuid::new_v4());
        Self(Mutex::new(endpoints))
    }

    /// Returns all endpoints in the order of tries.
    pub(crate) fn to_try(&self) -> Vec<Arc<str>> {
        lock(&self.0).clone()
    }

    /// Moves a failed endpoint to the end.
    pub(crate) fn failed(&self, endpoint: &Arc<str>) {
        let mut order = lock(&self.0);
        if let Some(at) = order.iter().position(|known| Arc::ptr_eq(known, endpoint)) {
            order[at..].rotate_left(1);
        }
    }

    /// Whether there is only one endpoint.
    pub(crate) fn is_one(&self) -> bool {
        lock(&self.0).len() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Endpoints {
        Endpoints::shuffled(&["a:1", "b:1", "c:1"].map(String::from))
    }

    #[test]
    fn a_failed_endpoint_is_tried_last() {
        let endpoints = three();
        let before = endpoints.to_try();
        endpoints.failed(&before[0]);
        assert_eq!(endpoints.to_try(), [&before[1], &before[2], &before[0]].map(Arc::clone));
        endpoints.failed(&before[2]);
        assert_eq!(endpoints.to_try(), [&before[1], &before[0], &before[2]].map(Arc::clone));
    }

    #[test]
    fn clients_differ_in_the_endpoint_that_they_try_first() {
        let first = |_| three().to_try()[0].clone();
        let mut firsts: Vec<_> = (0..100).map(first).collect();
        firsts.sort();
        firsts.dedup();
        assert_eq!(firsts.len(), 3);
    }
}
