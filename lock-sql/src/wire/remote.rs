//! A client's connections to a server, of either kind.

use std::sync::Arc;

use async_trait::async_trait;
use lock_core::{Attempt, Encryption, Error, Instant, Pem, Result, Tls, keep::tls::client_config};
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
use crate::{error::Refusal, wire::failure::Failure, wire::postgres::pushes::Pushes};

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
                Failure::Refused(why) => Refusal::of(C::DIALECT, why) == Refusal::ReadOnly,
                _ => false,
            })
        {
            pushes.broken.notify_one();
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

    fn moved(&self) -> Arc<Notify> {
        self.connections.hosts().moved().clone()
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
pub(super) fn hosts<C: Link>(
    server: &Server,
    default_port: u16,
    options: fn(&Server, &str, u16) -> Result<C::Options>,
) -> Result<Arc<Hosts<C>>> {
    server.check(default_port)?;
    if server.tls.mode == Encryption::Verify {
        // Says better than the client library what is wrong with the files.
        client_config(&server.tls)?;
    }
    let host = |(name, port): (String, u16)| {
        let (shown, server) = (format!("{name}:{port}"), server.clone());
        let way: Way<C> = Arc::new(move || options(&server, &name, port));
        Host::new(shown, way)
    };
    let hosts = server.addresses(default_port)?.into_iter().map(host).collect();
    Ok(Arc::new(Hosts::several(hosts, server.timeouts)))
}

/// The texts of certificates and of a key.
pub(super) struct Texts {
    pub(super) ca: Option<String>,
    pub(super) cert: Option<String>,
    pub(super) key: Option<String>,
}

impl Texts {
    /// Reads the files that there are, and checks what they hold: the client library shows a text
    /// that it cannot read, and a private key may be in it. It would also read a file in a task
    /// that panics when the runtime ends.
    pub(super) fn read(tls: &Tls) -> Result<Self> {
        let read = |pem: &Option<Pem>, option| pem.as_ref().map(|pem| pem.read(option)).transpose();
        let (ca, cert, key) =
            (read(&tls.ca, "ca")?, read(&tls.cert, "cert")?, read(&tls.key, "key")?);
        let texts = Self { ca, cert, key };
        if texts.ca.is_some() || texts.cert.is_some() || texts.key.is_some() {
            client_config(&texts.as_tls()).map_err(|error| named(tls, error))?;
        }
        Ok(texts)
    }

    /// What is checked is what was read: a file may be written just now.
    fn as_tls(&self) -> Tls {
        let mut tls = Tls::verify();
        let text = |text: &Option<String>| text.clone().map(Pem::Text);
        (tls.ca, tls.cert, tls.key) = (text(&self.ca), text(&self.cert), text(&self.key));
        tls
    }
}

/// The error about a text, with the path of its file.
fn named(tls: &Tls, error: Error) -> Error {
    let Error::InvalidOption { option, value, allowed } = error else { return error };
    let pem = match option.as_str() {
        "ca" => &tls.ca,
        "cert" => &tls.cert,
        "key" => &tls.key,
        _ => &None,
    };
    let value = pem.as_ref().map_or(value, |pem| format!("{pem:?}"));
    Error::InvalidOption { option, value, allowed }
}

/// Sets an option that the configuration names.
pub(super) fn set<O, V>(options: O, value: Option<V>, set: impl FnOnce(O, V) -> O) -> O {
    match value {
        Some(value) => set(options, value),
        None => options,
    }
}
