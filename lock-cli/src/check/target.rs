//! A store under check, and the check's own names.

use std::{
    future::ready,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use distlock::{Entry, Error, LockName, Locks, Store};
use futures_util::{StreamExt, TryStreamExt, stream};
use lock_core::{DistributedLock, StoreUrl, duration::shown};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::{
    namespace::{Namespace, Used},
    proxy::{Mode, Proxy},
};
use crate::{
    choice::Choice,
    exit::{Code, Failure},
};

/// Start of all names of all checks. No slash follows: native layouts have a use for it.
const PREFIX: &str = "distlock-check";
/// Longest wait for a reply. Then the store counts as out of reach.
const PATIENCE: Duration = Duration::from_secs(5);
/// Number of pings in a row without a reply. Then the store counts as gone.
const PINGS: u32 = 2;
/// Longest cleanup.
const CLEANING: Duration = Duration::from_secs(10);
/// Number of names that are inspected at a time.
const AT_ONCE: usize = 4;
/// Long enough for a busy store, and short enough to wait for.
const TTL: Duration = Duration::from_secs(5);
/// Where the rights are that a login needs.
const REMEDY: &str = "the rights are under \"Set-up and rights\" of the store's page";
/// Time for a client without a network to reach the store.
const PAST: Duration = Duration::from_secs(2);

/// The store, with a connection of our own that has no faults.
pub(super) struct Target {
    url: String,
    pub(super) driver: Arc<dyn DistributedLock>,
    /// Sees only the names of this run.
    locks: Locks,
    prefix: String,
    pub(super) used: Used,
    pub(super) way: Way,
    /// The rights that the login lacks, in words.
    pub(super) lacking: Vec<String>,
    /// Pings in a row without a reply.
    unanswered: AtomicU32,
}

/// The way to cut its clients off.
pub(super) enum Way {
    /// Through a proxy for each host, with this URL.
    Proxy { hosts: Vec<String>, url: String },
    /// By the driver, which has a file and no network.
    #[cfg(feature = "sqlite")]
    File,
    /// Not at all, with the reason.
    Bare(String),
}

impl Target {
    /// Connects.
    pub(super) async fn connect(store: &Choice) -> Result<Self, Failure> {
        let driver = store.connect().await?.driver().clone();
        let (prefix, used) = (format!("{PREFIX}.{}.", Uuid::new_v4().simple()), Used::default());
        let names =
            Namespace { driver: driver.clone(), prefix: prefix.clone(), used: used.clone() };
        Ok(Self {
            url: store.url().to_owned(),
            driver,
            locks: Locks::new(names),
            prefix,
            used,
            way: Way::Bare("not tried yet".to_owned()),
            lacking: Vec::new(),
            unanswered: AtomicU32::new(0),
        })
    }

    /// Tries a lock, and a cut. So a missing right or possibility shows before the first check.
    pub(super) async fn prepare(&mut self) -> Result<(), Failure> {
        let first = self.locks.lock("first")?.ttl(self.ttl()).wait(PATIENCE);
        let lacking = self.locks.driver().lacking(&LockName::new("first")?).await;
        let lacking = lacking.into_iter();
        self.lacking = lacking.map(|right| format!("the login lacks a right: {right}")).collect();
        let tried = async {
            let guard = first.acquire().await?;
            guard.renew().await?;
            guard.release().await
        };
        match tried.await {
            // The checks find this out.
            Ok(()) | Err(Error::Lost { .. }) => {}
            Err(error @ Error::Denied { .. }) => return Err(self.denied(&error)),
            Err(error) => return Err(error.into()),
        }
        self.way = self.find_way().await?;
        Ok(())
    }

    /// The store's word, and what it leaves out.
    fn denied(&self, error: &Error) -> Failure {
        let told = [error.to_string()].into_iter().chain(self.lacking.iter().cloned());
        let told: Vec<_> = told.chain([REMEDY.to_owned()]).collect();
        Failure::new(Code::Denied, told.join("; "))
    }

    /// The TTL of all its locks.
    pub(super) fn ttl(&self) -> Duration {
        let allowed = &self.locks.guarantees().ttl;
        TTL.clamp(*allowed.start(), *allowed.end())
    }

    /// Start of the names of a check.
    pub(super) fn prefix(&self, check: usize) -> String {
        format!("{}{check}.", self.prefix)
    }

    /// The URL, for a client without a proxy.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the time until the store replies.
    pub(super) async fn answer(&self) -> Result<Duration, Failure> {
        let clock = self.driver.clock();
        let asked = clock.now();
        match timeout(PATIENCE, self.locks.inspect("first")).await {
            Ok(answer) => Ok(answer.map(|_| clock.now().since(asked))?),
            Err(_) => {
                Err(Failure::new(Code::Unavailable, format!("no answer for {}", shown(PATIENCE))))
            }
        }
    }

    /// Why no client can be cut off. `None` if each can.
    pub(super) fn uncut(&self) -> Option<&str> {
        match &self.way {
            Way::Bare(why) => Some(why),
            _ => None,
        }
    }

    /// Checks that the store replies. After some failures in a row, it [is gone](Self::is_gone).
    pub(super) async fn ping(&self) -> Result<(), Failure> {
        let answer = self.answer().await;
        match answer {
            Ok(_) => self.unanswered.store(0, Ordering::Relaxed),
            Err(_) => drop(self.unanswered.fetch_add(1, Ordering::Relaxed)),
        }
        answer.map(drop)
    }

    /// Whether it was silent for so long that nothing more can be checked.
    pub(super) fn is_gone(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed) >= PINGS
    }

    /// Whether names are written as other clients write them. Such layouts have no odd names.
    pub(super) fn is_native(&self) -> bool {
        let url = StoreUrl::parse(&self.url);
        url.is_ok_and(|url| url.options().text("layout") == Some("native"))
    }

    /// The queues below a prefix that are not empty.
    pub(super) async fn left(&self, prefix: &str) -> Result<Vec<(LockName, Vec<Entry>)>, Error> {
        let queue = |name: LockName| async move {
            match self.driver.inspect(&name).await {
                // The client that asked for it was refused, too.
                Err(Error::InvalidName { .. }) => Ok((name, Vec::new())),
                queue => Ok((name, queue?)),
            }
        };
        let queues = stream::iter(self.used.below(prefix)).map(queue).buffer_unordered(AT_ONCE);
        queues.try_filter(|(_, queue)| ready(!queue.is_empty())).try_collect().await
    }

    /// Removes what is left: clients that were cut off, attempts that a signal ended. Fails if
    /// something is left, which ends with its TTL.
    pub(super) async fn clean(&self) -> Result<(), Failure> {
        let left = |why: String| {
            let prefix = &self.prefix;
            Failure::new(Code::Rejected, format!("not all of {prefix} is cleaned up: {why}"))
        };
        match timeout(CLEANING, self.sweep()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(left(error.to_string())),
            Err(_) => Err(left(format!("not done after {}", shown(CLEANING)))),
        }
    }

    async fn sweep(&self) -> Result<(), Error> {
        loop {
            let left = self.left(&self.prefix).await?;
            if left.is_empty() {
                return self.locks.close().await;
            }
            for (name, queue) in &left {
                for attempt in queue.iter().filter_map(|entry| entry.attempt) {
                    self.driver.revoke(name, attempt).await?;
                }
            }
            // Waits for clients that are leaving by themselves.
            sleep(Duration::from_millis(50)).await;
        }
    }

    async fn find_way(&self) -> Result<Way, Failure> {
        let url = StoreUrl::parse(&self.url)?;
        if let Some(hosts) = servers(&url) {
            return Ok(self.through_a_proxy(hosts).await);
        }
        #[cfg(feature = "sqlite")]
        if url.scheme() == "sqlite" {
            return Ok(Way::File);
        }
        Ok(Way::Bare("there is no network that could be cut".to_owned()))
    }

    /// Tries a proxy. A certificate is for the host's name, not for the proxy's.
    async fn through_a_proxy(&self, hosts: Vec<String>) -> Way {
        let mut url = self.url.clone();
        let mut past = self.past_a_proxy(&url, &hosts).await;
        if past.is_err() {
            let named = with_server_name(&url, &hosts);
            if let Ok(other) = self.past_a_proxy(&named, &hosts).await {
                (url, past) = (named, Ok(other));
            }
        }
        match past {
            Ok(false) => Way::Proxy { hosts, url },
            Ok(true) => Way::Bare("its clients go past a proxy, to hosts of its own".to_owned()),
            Err(error) => Way::Bare(format!("cannot be reached through a proxy: {error}")),
        }
    }

    /// Whether a client gets a reply after the end of its proxy: servers may send it elsewhere.
    async fn past_a_proxy(
        &self,
        url: &str,
        hosts: &[String],
    ) -> Result<bool, lock_core::properties::Failure> {
        let proxy = Proxy::start(hosts).await?;
        let locks = distlock::connect(via(url, &proxy)).await?;
        let name = format!("{}first", self.prefix);
        locks.inspect(&name).await?;
        proxy.set(Mode::Dead);
        Ok(matches!(timeout(PAST, locks.inspect(&name)).await, Ok(Ok(_))))
    }
}

/// The servers in a URL, with their ports. `None` for a store without servers.
fn servers(url: &StoreUrl) -> Option<Vec<String>> {
    Store::port_of(url.scheme()).map(|port| url.hosts(port))
}

/// The URL, with the first host's name for the certificate's check.
fn with_server_name(url: &str, hosts: &[String]) -> String {
    let host = hosts.first().and_then(|host| host.rsplit_once(':')).map_or("", |(name, _)| name);
    let name = host.trim_start_matches('[').trim_end_matches(']');
    format!("{url}{}server_name={name}", if url.contains('?') { '&' } else { '?' })
}

/// The URL with a proxy's doors for its hosts.
pub(super) fn via(url: &str, proxy: &Proxy) -> String {
    let doors: Vec<_> = proxy.doors().iter().map(ToString::to_string).collect();
    with_hosts(url, &doors.join(","))
}

fn with_hosts(url: &str, hosts: &str) -> String {
    let Some((scheme, rest)) = url.split_once(':') else { return url.to_owned() };
    let Some(rest) = rest.strip_prefix("//") else {
        let slash = if rest.is_empty() || rest.starts_with('?') { "" } else { "/" };
        return format!("{scheme}://{hosts}{slash}{rest}");
    };
    let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let login = authority.rfind('@').map_or("", |at| &authority[..=at]);
    format!("{scheme}://{login}{hosts}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_deployment_has_its_port() {
        for (url, address) in [
            ("redis://h", Some("h:6379")),
            ("redis+sentinel://h/service", Some("h:26379")),
            ("redis+cluster://h", Some("h:6379")),
            ("postgresql://h", Some("h:5432")),
            ("sqlite:", None),
        ] {
            let servers = servers(&StoreUrl::parse(url).unwrap());
            assert_eq!(servers.as_deref().map(|all| all[0].as_str()), address, "{url}");
        }
    }

    #[test]
    fn the_name_of_the_first_host_is_added() {
        for (url, host, named) in [
            ("rediss://h", "h:6379", "rediss://h?server_name=h"),
            ("etcds://[::1]?ttl=5s", "[::1]:2379", "etcds://[::1]?ttl=5s&server_name=::1"),
        ] {
            assert_eq!(with_server_name(url, &[host.to_owned()]), named);
        }
    }

    #[test]
    fn only_the_hosts_are_replaced() {
        for (url, replaced) in [
            ("redis:", "redis://x"),
            ("redis:?ttl=3s", "redis://x?ttl=3s"),
            ("redis:2", "redis://x/2"),
            ("redis:/2", "redis://x//2"),
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
