//! A store, and each process's own way to it.

use std::{ops::Deref, path::Path};

use lock_lab::{Proxy, Server};

type Running = Box<dyn Deref<Target = Server> + Send + Sync>;

/// The stores by name, as far as they are compiled in.
pub const STORES: &[&str] = &[
    #[cfg(feature = "sqlite")]
    "sqlite",
    #[cfg(feature = "redis")]
    "redis",
    #[cfg(feature = "etcd")]
    "etcd",
    #[cfg(feature = "zookeeper")]
    "zookeeper",
];

pub struct Stage {
    server: Option<Running>,
    file: String,
}

impl Stage {
    /// Starts a server; a file needs none.
    pub async fn start(store: &str, folder: &Path) -> Self {
        /// In memory: a disk that is slow for a second is no fault of this program.
        macro_rules! running {
            ($server:ident) => {{
                let server = lock_lab::$server::builder().in_memory().start().await;
                Box::new(server.unwrap_or_else(|error| panic!("{error}"))) as Running
            }};
        }
        let server = match store {
            "etcd" => Some(running!(Etcd)),
            "redis" => Some(running!(Redis)),
            "zookeeper" => Some(running!(ZooKeeper)),
            _ => None,
        };
        Self { server, file: format!("sqlite:{}", folder.join("locks.db").display()) }
    }

    /// The URL for a new process, and its network, if there is one.
    pub async fn way(&self) -> (String, Option<Proxy>) {
        let Some(server) = &self.server else { return (self.file.clone(), None) };
        let proxy = Proxy::start(server.addr()).await.unwrap_or_else(|error| panic!("{error}"));
        (server.url_via(&proxy), Some(proxy))
    }

    /// The server, which can be stopped.
    pub fn server(&self) -> Option<&Server> {
        self.server.as_deref().map(Deref::deref)
    }
}
