//! A client's connections to a server, of either kind.

use std::sync::Arc;

use async_trait::async_trait;
use lock_core::{Attempt, Encryption, Instant, Pem, Result};
use tokio::sync::Notify;

use crate::{
    config::server::Server,
    layout::dialect::Dialect,
    wire::{
        connections::Connections,
        database::{Answer, Database},
        host::Host,
        hosts::Hosts,
        limit::Limit,
        link::Link,
        own_client::Way,
        turns::{SEATS, Turn, Turns},
    },
};
#[cfg(feature = "postgres")]
use crate::{error, wire::failure::Failure, wire::postgres::doubts::Pushes};

/// One client's connections to a server.
pub(crate) struct Remote<C: Link> {
    /// The server and the database, as this client names them; `None` if the server pushes.
    address: Option<String>,
    turns: Turns,
    connections: Arc<Connections<C>>,
    #[cfg(feature = "postgres")]
    pub(super) pushes: Option<Pushes>,
}

impl<C: Link> Remote<C> {
    /// Sends nothing yet.
    pub(super) fn by(address: Option<String>, hosts: Arc<Hosts<C>>) -> Self {
        Self {
            address,
            turns: Turns::new(SEATS),
            connections: Connections::new(hosts, SEATS),
            #[cfg(feature = "postgres")]
            pushes: None,
        }
    }
}

#[async_trait]
impl<C: Link> Database for Remote<C> {
    fn dialect(&self) -> Dialect {
        C::DIALECT
    }

    fn turns(&self) -> &Turns {
        &self.turns
    }

    async fn execute(
        &self,
        script: &str,
        limit: &Limit,
        turn: Turn,
        caller: Option<&Attempt>,
    ) -> Answer {
        let answer = self.connections.run(script, limit, turn, caller).await;
        #[cfg(feature = "postgres")]
        if let Some(pushes) = &self.pushes
            && answer.as_ref().is_err_and(|failure| match failure {
                Failure::Lost(_) => true,
                Failure::Refused(why) => error::is_read_only(C::DIALECT, why),
                _ => false,
            })
        {
            pushes.doubts.broken.notify_one();
        }
        answer
    }

    fn refuse(&self) {
        self.turns.close();
        self.connections.refuse();
        #[cfg(feature = "postgres")]
        if let Some(task) = self.pushes.as_ref().and_then(|pushes| pushes.task.get()) {
            task.abort();
        }
    }

    async fn quit(&self) {
        self.connections.quit().await;
    }

    fn known_as(&self) -> Option<&str> {
        self.address.as_deref()
    }

    fn moved(&self) -> Option<Arc<Notify>> {
        self.connections.hosts().moved().cloned()
    }

    fn moved_at(&self) -> Option<Instant> {
        self.connections.hosts().moved_at()
    }

    #[cfg(feature = "postgres")]
    fn pushes(&self) -> Option<&Pushes> {
        self.pushes.as_ref()
    }
}

impl<C: Link> Drop for Remote<C> {
    fn drop(&mut self) {
        self.refuse();
    }
}

/// The hosts of a server, each with the options that a function makes for it. The function is called
/// for each connection, since the password and the certificates may be new ones.
///
/// # Errors
///
/// [`Error::InvalidOption`](lock_core::Error::InvalidOption) for a configuration that cannot work.
pub(super) fn hosts<C: Link>(
    server: &Server,
    default_port: u16,
    options: fn(&Server, &str, u16) -> Result<C::Options>,
) -> Result<Arc<Hosts<C>>> {
    server.check(default_port)?;
    if server.tls.mode == Encryption::Verify {
        // Says better than the client library what is wrong with the files.
        lock_core::keep::tls::client_config(&server.tls)?;
    }
    let host = |(name, port): (String, u16)| {
        let (shown, server) = (format!("{name}:{port}"), server.clone());
        let way: Way<C> = Arc::new(move || options(&server, &name, port));
        Host { name: shown, way, refused: Arc::default() }
    };
    let hosts = server.addresses(default_port)?.into_iter().map(host).collect();
    Ok(Arc::new(Hosts::several(hosts, server.timeouts)))
}

/// Reads certificates or a key, if there are any. The client library would read a file in a task
/// that panics when the runtime ends.
///
/// # Errors
///
/// [`Error::InvalidOption`](lock_core::Error::InvalidOption) if the file cannot be read.
pub(super) fn pem(pem: Option<&Pem>, option: &str) -> Result<Option<String>> {
    pem.map(|pem| pem.read(option)).transpose()
}

/// Sets an option that the configuration names.
pub(super) fn set<O, V>(options: O, value: Option<V>, set: impl FnOnce(O, V) -> O) -> O {
    match value {
        Some(value) => set(options, value),
        None => options,
    }
}
