//! A store, and a way to it for each process.

use lock_lab::{AnyStore, Proxy, Server};

/// A file, and servers that notify their clients in different ways.
const STORES: [&str; 4] = ["sqlite", "redis", "etcd", "zookeeper"];

/// The names of the stores that are compiled in.
pub fn stores() -> impl Iterator<Item = &'static str> {
    let compiled_in = distlock::STORES.iter().filter(|store| store.compiled_in);
    compiled_in.map(|store| store.scheme).filter(|name| STORES.contains(name))
}

pub struct Stage(AnyStore);

impl Stage {
    /// In memory: a slow disk is no fault of this program.
    pub async fn start(store: &str) -> Self {
        Self(AnyStore::open_in_memory(store).await)
    }

    /// The URL for a new process, and its network, if there is one.
    pub async fn way(&self) -> (String, Option<Proxy>) {
        let Some(server) = self.server() else { return (self.0.url(), None) };
        let proxy = Proxy::start(server.addr()).await.unwrap_or_else(|error| panic!("{error}"));
        (server.url_via(&proxy), Some(proxy))
    }

    /// The server, which can be stopped.
    pub fn server(&self) -> Option<&Server> {
        self.0.server()
    }
}
