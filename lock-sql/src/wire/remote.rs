//! A client's connections to a server, of either kind.

use std::sync::Arc;

use async_trait::async_trait;
use lock_core::{Encryption, Error, Instant, Pem, Result, Tls, keep::tls::check};
use tokio::sync::Notify;

#[cfg(feature = "postgres")]
use crate::wire::postgres::pushes::Pushes;
use crate::{
    config::server::Server,
    layout::dialect::Dialect,
    wire::{
        connections::Connections,
        database::{Answer, Database},
        given_client::Way,
        hosts::{Host, Hosts, Link},
        turns::{Limit, SEATS, Turn, Turns},
    },
};

/// One client's connections to a server.
pub(crate) struct Remote<C: Link> {
    /// The server and the database, as this client names them; `None` if the server pushes.
    address: Option<String>,
    turns: Turns,
    pub(super) connections: Arc<Connections<C>>,
    #[cfg(feature = "postgres")]
    pub(super) pushes: Option<Pushes>,
}

impl<C: Link> Remote<C> {
    /// Sends nothing yet.
    pub(super) fn by(address: Option<String>, hosts: Arc<Hosts<C>>) -> Self {
        Self {
            address,
            turns: Turns::new(SEATS),
            connections: Connections::new(hosts, SEATS[0]),
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

    async fn execute(&self, script: &str, limit: &Limit, turn: Turn) -> Answer {
        self.connections.run(script, limit, turn).await
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

    fn paced_as(&self) -> Dialect {
        // Polled clients wake each other by their address.
        if self.address.is_some() { Dialect::MySql } else { C::DIALECT }
    }

    fn known_as(&self) -> Option<&str> {
        self.address.as_deref()
    }

    fn moved(&self) -> Arc<Notify> {
        self.connections.hosts.moved.clone()
    }

    fn moved_at(&self) -> Option<Instant> {
        self.connections.hosts.moved_at()
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

/// The server and the database of clients that poll: those of a process wake each other.
pub(super) fn address(server: &Server) -> String {
    format!("{}/{}", server.hosts.join(","), server.database.as_deref().unwrap_or_default())
}

/// The hosts of a server, each with the options that a function makes for it. The function is called
/// for each connection, since the password and the certificates may be new ones.
pub(super) fn hosts<C: Link>(
    server: &Server,
    default_port: u16,
    options: fn(&Server, &str, u16) -> Result<C::Options>,
) -> Result<Arc<Hosts<C>>> {
    server.check(default_port)?;
    if server.tls.mode == Encryption::Verify {
        // Says better than the client library what is wrong with the files.
        check(&server.tls)?;
    }
    let host = |(name, port): (String, u16)| {
        let (shown, server) = (format!("{name}:{port}"), server.clone());
        let way: Way<C> = Arc::new(move || options(&server, &name, port));
        Host::new(shown, way)
    };
    let hosts = server.addresses(default_port)?.into_iter().map(host).collect();
    let mut hosts = Hosts::several(hosts, server.timeouts);
    hosts.is_pooled = server.pooler.is_some();
    Ok(Arc::new(hosts))
}

/// The texts of certificates and of a key: `ca`, `cert` and `key`. Reads the files that there are,
/// and checks what they hold: the client library shows a text that it cannot read, and a private
/// key may be in it. It would also read a file in a task that panics when the runtime ends.
pub(super) fn texts(tls: &Tls) -> Result<[Option<String>; 3]> {
    let given = [("ca", &tls.ca), ("cert", &tls.cert), ("key", &tls.key)];
    let mut texts = [None, None, None];
    for (text, (option, pem)) in texts.iter_mut().zip(given) {
        *text = pem.as_ref().map(|pem| pem.read(option)).transpose()?;
    }
    if texts.iter().any(Option::is_some) {
        // What is checked is what was read: a file may be written just now.
        let mut read = Tls::verify();
        [read.ca, read.cert, read.key] = texts.clone().map(|text| text.map(Pem::Text));
        check(&read).map_err(|error| named(given, error))?;
    }
    Ok(texts)
}

/// The error about a text, with the path of its file.
fn named(given: [(&str, &Option<Pem>); 3], error: Error) -> Error {
    let Error::InvalidOption { option, value, allowed } = error else { return error };
    let pem =
        given.into_iter().find(|(given, _)| *given == option).and_then(|(_, pem)| pem.as_ref());
    let value = pem.map_or(value, |pem| format!("{pem:?}"));
    Error::InvalidOption { option, value, allowed }
}

/// Sets an option that the configuration names.
pub(super) fn set<O, V>(options: O, value: Option<V>, set: impl FnOnce(O, V) -> O) -> O {
    match value {
        Some(value) => set(options, value),
        None => options,
    }
}
