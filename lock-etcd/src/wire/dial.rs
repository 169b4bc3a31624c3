//! Making connections to etcd, or taking them from the caller.

use std::{fmt, sync::Arc, time::Duration};

use etcd_client::{Client, ConnectOptions};
use lock_core::{Encryption, keep::tls::speaks_tls};
use tokio_util::sync::CancellationToken;

use crate::{
    error::{Failure, FailureKind},
    wire::{
        configured::{Configured, for_locks},
        login::Login,
        member::Member,
        tls_error,
    },
};

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
            Self::Configured(own) => own.endpoints.clone(),
            Self::Options(endpoints, _) => endpoints.clone(),
            Self::Client(_) => vec![GIVEN.to_owned()],
        }
    }

    /// Whether it has certificates, which may have been replaced since the last connection.
    pub(crate) fn is_encrypted(&self) -> bool {
        matches!(self, Self::Configured(own) if own.tls.mode != Encryption::Off)
    }

    /// Whether each connection is another one. A client of the caller's stays the same.
    pub(crate) fn is_ours(&self) -> bool {
        !matches!(self, Self::Client(_))
    }

    /// The login that the driver itself uses.
    pub(crate) fn login(&self) -> Option<&Login> {
        match self {
            Self::Configured(own) => own.login.as_ref(),
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
        let Self::Configured(own) = self else { return failure };
        if self.is_encrypted() && failure.is_reset() {
            let told = format!("{}: {failure}", tls_error::NO_TLS);
            return Failure::new(FailureKind::Refused, told);
        }
        if failure.kind != FailureKind::Broken {
            return failure;
        }
        let cause = match self.is_encrypted() {
            true => tls_error::refusal(endpoint, &own.tls, limit).await.map(tls_error::explained),
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
            Self::Configured(own) => own.dial(endpoint, limit).await?,
            Self::Options(_, options) => {
                Client::connect([&**endpoint], Some(for_locks(options, limit))).await?
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
