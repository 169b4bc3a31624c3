//! A store under check, and the names that are the check's own.

use std::{sync::Arc, time::Duration};

use distlock::{Error, Locks, Store};
use lock_core::{DistributedLock, StoreUrl};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::{namespace::Namespace, proxy::Proxy};
use crate::{
    choice::Choice,
    exit::{Code, Failure},
};

/// What all names of all checks start with. No slash follows: native layouts have a use for it.
const PREFIX: &str = "distlock-check";
/// How long the store may take for an answer before it counts as out of reach.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the cleaning may take.
const CLEANING: Duration = Duration::from_secs(5);

/// The store, with a connection of our own that has no faults.
pub(super) struct Site {
    url: String,
    pub(super) driver: Arc<dyn DistributedLock>,
    /// Sees the names of this run only.
    pub(super) locks: Locks,
    prefix: String,
    pub(super) way: Way,
}

/// How its clients can be cut off.
pub(super) enum Way {
    /// Through a proxy for each host.
    Proxy(Vec<String>),
    /// By the driver, which has a file and no network.
    #[cfg(feature = "sqlite")]
    File,
    /// Not at all, and why.
    Bare(String),
}

impl Site {
    /// Connects, and tries a lock: who may not, or cannot, is told before anything is checked.
    ///
    /// # Errors
    ///
    /// What the store answers.
    pub(super) async fn open(store: &Choice) -> Result<Arc<Self>, Failure> {
        let driver = store.connect().await?.driver().clone();
        let prefix = format!("{PREFIX}.{}.", Uuid::new_v4().simple());
        let locks = Locks::new(Namespace { driver: driver.clone(), prefix: prefix.clone() });
        match locks.lock("first")?.wait(PATIENCE).acquire().await?.release().await {
            // To be found out by the checks.
            Ok(()) | Err(Error::Lost { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let way = Way::find(store.url()).await?;
        Ok(Arc::new(Self { url: store.url().to_owned(), driver, locks, prefix, way }))
    }

    /// What the names of a check start with.
    pub(super) fn prefix(&self, room: usize) -> String {
        format!("{}{room}.", self.prefix)
    }

    /// The URL, for a driver or through a proxy.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Whether the store answers.
    ///
    /// # Errors
    ///
    /// Why not.
    pub(super) async fn ping(&self) -> Result<(), Failure> {
        match timeout(PATIENCE, self.locks.inspect("first")).await {
            Ok(answer) => Ok(answer.map(drop)?),
            Err(_) => Err(Failure::new(Code::Unavailable, format!("no answer for {PATIENCE:?}"))),
        }
    }

    /// Removes whoever is left: clients that were cut off, attempts that a signal ended.
    ///
    /// # Errors
    ///
    /// If somebody is left. They end with their TTL.
    pub(super) async fn clean(&self) -> Result<(), Failure> {
        let left = |why: String| {
            let prefix = &self.prefix;
            Failure::new(Code::Rejected, format!("not all of {prefix} is cleaned up: {why}"))
        };
        match timeout(CLEANING, self.sweep()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(left(error.to_string())),
            Err(_) => Err(left(format!("not done after {CLEANING:?}"))),
        }
    }

    async fn sweep(&self) -> Result<(), Error> {
        loop {
            let names = self.locks.names("").await?;
            if names.is_empty() {
                return self.locks.close().await;
            }
            for name in &names {
                for entry in self.locks.inspect(name).await? {
                    if let Some(attempt) = entry.attempt {
                        self.locks.revoke(name, attempt).await?;
                    }
                }
            }
            // Those that are leaving by themselves.
            sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Way {
    async fn find(url: &str) -> Result<Self, Failure> {
        let parsed = StoreUrl::parse(url)?;
        if let Some(port) = Store::of_scheme(parsed.scheme()).and_then(|store| store.port) {
            return Ok(Self::through(url, parsed.hosts(port)).await);
        }
        #[cfg(feature = "sqlite")]
        if parsed.scheme() == "sqlite" {
            return Ok(Self::File);
        }
        Ok(Self::Bare("there is no network that could be cut".to_owned()))
    }

    /// A certificate may be for another name, or the servers may send their clients elsewhere.
    async fn through(url: &str, hosts: Vec<String>) -> Self {
        let why = |error: String| Self::Bare(format!("cannot be reached through a proxy: {error}"));
        let proxy = match Proxy::start(&hosts).await {
            Ok(proxy) => proxy,
            Err(error) => return why(error.to_string()),
        };
        let locks = match distlock::connect(via(url, &proxy)).await {
            Ok(locks) => locks,
            Err(error) => return why(error.to_string()),
        };
        match locks.close().await {
            Ok(()) => Self::Proxy(hosts),
            Err(error) => why(error.to_string()),
        }
    }
}

/// The URL with a proxy's doors for its hosts.
pub(super) fn via(url: &str, proxy: &Proxy) -> String {
    let doors: Vec<_> = proxy.doors().iter().map(ToString::to_string).collect();
    with_hosts(url, &doors.join(","))
}

fn with_hosts(url: &str, hosts: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let login = authority.rfind('@').map_or("", |at| &authority[..=at]);
    format!("{scheme}://{login}{hosts}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_hosts_are_replaced() {
        for (url, replaced) in [
            ("redis://", "redis://x"),
            ("redis://h", "redis://x"),
            ("redis://me:p%40@h:1/2?ttl=5s", "redis://me:p%40@x/2?ttl=5s"),
            ("etcd://a,[::1]:2?prefix=/b@", "etcd://x?prefix=/b@"),
            ("zookeeper://a,b/c", "zookeeper://x/c"),
        ] {
            assert_eq!(with_hosts(url, "x"), replaced);
        }
    }
}
