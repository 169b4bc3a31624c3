//! Making connections to etcd, or taking them from the caller.

use std::{fmt, sync::Arc, time::Duration};

use etcd_client::{Client, ConnectOptions};

use crate::{
    error::Failure,
    wire::member::{ANSWER_LIMIT, Member},
};

/// The name of the one endpoint of a caller's client.
const GIVEN: &str = "(the caller's client)";

/// The source of connections.
#[derive(Clone)]
pub(crate) enum Source {
    /// These endpoints and options: each connection is to one member, and is ours.
    Options(Vec<String>, Box<ConnectOptions>),
    /// A client of the caller, shared, with its own endpoints.
    Client(Box<Client>),
}

impl Source {
    pub(crate) fn endpoints(&self) -> Vec<String> {
        match self {
            Self::Options(endpoints, _) => endpoints.clone(),
            Self::Client(_) => vec![GIVEN.to_owned()],
        }
    }

    /// Whether the connection is shared with the caller.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Client(_))
    }

    /// Returns a connection to this member. With the caller's client it is the same connection
    /// again, after a new login if `login` is true.
    ///
    /// Without a login in the options this sends nothing, and cannot fail for a well-formed
    /// endpoint.
    ///
    /// # Errors
    ///
    /// The reason why the login was refused.
    pub(crate) async fn dial(
        &self,
        endpoint: &Arc<str>,
        generation: u64,
        login: bool,
    ) -> Result<Member, Failure> {
        let client = match self {
            Self::Options(_, options) => {
                Client::connect([&**endpoint], Some(for_locks(options))).await?
            }
            Self::Client(client) => {
                if login {
                    client.refresh_token().await?;
                }
                Client::clone(client)
            }
        };
        Ok(Member { generation, endpoint: endpoint.clone(), client })
    }
}

/// Options with a login only.
pub(crate) fn options(login: Option<(&str, &str)>) -> Box<ConnectOptions> {
    let options = ConnectOptions::new();
    Box::new(match login {
        Some((user, password)) => options.with_user(user, password),
        None => options,
    })
}

/// Sets the options that a connection for locks needs, whatever they were.
fn for_locks(options: &ConnectOptions) -> ConnectOptions {
    options
        .clone()
        // A member without a leader ends its streams instead of staying silent for ever.
        .with_require_leader(true)
        .with_connect_timeout(ANSWER_LIMIT)
        // No HTTP/2 pings: etcd drops a connection that pings more often than every 5 s. The lease
        // keep-alives notice sooner that etcd does not answer.
        .with_tcp_keepalive(Duration::from_secs(10))
        .with_auto_token_refresh(true)
}

/// The options would show the password.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.endpoints()).finish()
    }
}
