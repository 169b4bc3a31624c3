//! Who is measured: distlock, and what runs beside it.

pub(crate) mod all;
mod distlock;
mod floor;
mod usual;

use std::time::Duration;

use ::distlock::StoreUrl;
use async_trait::async_trait;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};

use crate::{Failure, Kind, Workload};

/// The TTL of a URL that sets none.
const TTL: Duration = Duration::from_secs(15);
/// The most workers that get something of their own each.
pub(crate) const MOST_APART: u32 = 64;
/// The options of a URL with a login that is not in the URL.
const ELSEWHERE: [&str; 4] = ["user_file", "user_env", "password_file", "password_env"];

/// What a contender stands for.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// distlock.
    Distlock,
    /// distlock in a mode of the store that keeps no order of waiters.
    Unordered,
    /// The bare client, which sends the least that takes and frees a name. It promises nothing.
    FloorLeast,
    /// The bare client, which touches as many keys as distlock does.
    FloorKeys,
    /// What people use on this store today: the real program or library.
    Usual,
    /// The same, written again here because the real one is not installed.
    Imitation,
}

impl Role {
    fn is_ours(self) -> bool {
        matches!(self, Self::Distlock | Self::Unordered)
    }

    /// Whether two holders at once are a fault: floors do not wait, so they take names of their own.
    pub fn excludes(self) -> bool {
        matches!(self, Self::Distlock | Self::Unordered | Self::Usual)
    }

    /// Whether it can wait for a name that another worker holds.
    pub fn waits(self) -> bool {
        !matches!(self, Self::FloorLeast | Self::FloorKeys)
    }
}

/// A way to lock on one store.
#[derive(Clone, Copy)]
pub(crate) struct Contender {
    /// Its name in tables: "distlock", "SET NX PX + compare-and-delete".
    pub(crate) name: &'static str,
    /// What it stands for.
    pub(crate) role: Role,
    /// What each worker has of its own, where not many can have it.
    each: Option<&'static str>,
    open: Open,
}

/// What a client is to connect to, and for which locks.
struct Asked {
    /// The URL as it was given.
    text: String,
    url: StoreUrl,
    role: Role,
    /// The TTL of a bare client's locks.
    ttl: Duration,
    workload: Workload,
}

type Opened = Result<Box<dyn Client>, Failure>;
type Opening = BoxFuture<'static, Opened>;
type Open = fn(Asked) -> Opening;

/// A client of one process.
#[async_trait]
pub(crate) trait Client: Send + Sync {
    /// Makes what one worker works with. `name` is the full name of its lock, below the run's
    /// prefix; `shared` as in [`crate::Turn`].
    async fn worker(&self, name: &str, shared: bool) -> Result<Box<dyn Worker>, Failure>;

    /// Disconnects. A drop does it, too, but removes nothing that stands in the store.
    async fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

/// What one worker works with.
#[async_trait]
pub(crate) trait Worker: Send {
    /// Takes the lock, and returns its fencing token if there is one.
    async fn acquire(&mut self) -> Result<Option<u64>, Failure>;

    /// Gives it back. Called once after each successful `acquire`.
    async fn release(&mut self) -> Result<(), Failure>;
}

impl Contender {
    /// Connects one process to the store at this URL. All workers of a process share it, as the
    /// tasks of a program share a client.
    pub(crate) async fn open(self, url: &str, workload: &Workload) -> Opened {
        let Self { name, role, each, open } = self;
        let Workload { kind, workers, .. } = *workload;
        let (text, is_ours) = (url.to_owned(), role.is_ours());
        if !is_ours && kind != Kind::Exclusive {
            return Err(format!("{name} has no {kind}").into());
        }
        let url = if is_ours { StoreUrl::parse(url)? } else { simple(url)? };
        if let Some(each) = each.filter(|_| workers > MOST_APART) {
            let why = format!("{each} for each of {workers} workers: {MOST_APART} at most");
            return Err(why.into());
        }
        let ttl = workload.ttl.or(url.options().duration("ttl")?).unwrap_or(TTL);
        open(Asked { text, url, role, ttl, workload: workload.clone() }).await
    }
}

/// Reads a URL, if the bare clients can do what it asks for.
fn simple(url: &str) -> Result<StoreUrl, Failure> {
    let url = StoreUrl::parse(url)?;
    match obstacle(&url) {
        None => Ok(url),
        Some(what) => Err(format!("no floor and no usual way: they {what}").into()),
    }
}

fn obstacle(url: &StoreUrl) -> Option<&'static str> {
    let (scheme, mut options) = (url.scheme(), url.options());
    if scheme.starts_with("redis+") || scheme == "redlock" {
        Some("know one server alone")
    } else if options.text("tls") == Some("verify")
        || ["etcds", "rediss", "valkeys"].contains(&scheme)
    {
        Some("do not speak TLS (measure with tls=off where you may)")
    } else if ELSEWHERE.into_iter().any(|option| options.text(option).is_some()) {
        Some("need user and password in the URL")
    } else if options.text("failover").is_some() {
        Some("know no failover")
    } else if options.text("pooler").is_some() {
        Some("know no pooler")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_bare_clients_cannot_follow_is_left_out_with_the_reason() {
        for (url, why) in [
            ("redis+sentinel://a,b/main", "one server"),
            ("redlock://a,b,c", "one server"),
            ("rediss://h", "TLS"),
            ("postgres://h/db?tls=verify", "TLS"),
            ("etcd://me@h?password_file=/p", "user and password"),
            ("mysql://a,b/db?failover=managed", "failover"),
            ("postgres://h/db?pooler=session", "pooler"),
        ] {
            let error = simple(url).unwrap_err().to_string();
            assert!(error.contains(why), "{url}: {error}");
        }
        assert_eq!(simple("redis://me:p%40@h/3?ttl=2s").unwrap().password(), Some("p@"));
    }
}
