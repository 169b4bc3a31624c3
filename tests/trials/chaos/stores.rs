//! The stores of the runs, and how each lists its leftovers.

use std::{pin::Pin, sync::Arc, time::Duration};

#[cfg(any(feature = "etcd", feature = "zookeeper"))]
use crate::chaos::cluster::{self, Nodes, Terms};
use crate::chaos::{
    server::{self, Leftovers, Single},
    stage::{Connecting, Failure, Stage},
};

pub type Starting = Pin<Box<dyn Future<Output = Result<Arc<dyn Stage>, Failure>>>>;

/// A store by name.
pub struct Store {
    pub name: &'static str,
    /// Whether it needs a network of namespaces.
    pub network: bool,
    pub start: fn() -> Starting,
}

/// All stores that are compiled in. The slowest come first, so that all end at about the same time.
pub fn all() -> Vec<Store> {
    vec![
        #[cfg(feature = "zookeeper")]
        Store { name: "zookeeper3", network: true, start: || Box::pin(zookeeper_cluster()) },
        #[cfg(feature = "etcd")]
        Store { name: "etcd3", network: true, start: || Box::pin(etcd_cluster()) },
        #[cfg(feature = "etcd")]
        Store { name: "etcd3_of_3.5", network: true, start: || Box::pin(etcd_3_5_cluster()) },
        #[cfg(feature = "zookeeper")]
        Store { name: "zookeeper", network: false, start: || Box::pin(zookeeper()) },
        #[cfg(feature = "postgres")]
        Store { name: "postgres", network: false, start: || Box::pin(postgres()) },
        #[cfg(feature = "mysql")]
        Store { name: "mariadb", network: false, start: || Box::pin(mariadb()) },
        #[cfg(feature = "etcd")]
        Store { name: "etcd", network: false, start: || Box::pin(etcd()) },
        #[cfg(feature = "redis")]
        Store { name: "redis", network: false, start: || Box::pin(redis()) },
        #[cfg(feature = "sqlite")]
        Store { name: "sqlite", network: false, start: || Box::pin(sqlite()) },
    ]
}

fn connect(url: String) -> Connecting {
    Box::pin(async move { Ok(distlock::connect(&url).await?) })
}

#[cfg(feature = "sqlite")]
async fn sqlite() -> Result<Arc<dyn Stage>, Failure> {
    Ok(Arc::new(crate::chaos::file::File::new()?))
}

/// All keys, except fences and client records. The last token of a name stays for the next holder.
/// The record of a killed client stays for an hour.
#[cfg(feature = "redis")]
fn redis_left(server: &lock_lab::Redis) -> Leftovers<'_> {
    Box::pin(async move {
        let mut keys = server.keys().await?;
        keys.retain(|key| {
            !key.ends_with(b"\xfffence") && !key.starts_with(b"{distlock}\xffclient:")
        });
        Ok(shown(&keys))
    })
}

#[cfg(any(feature = "etcd", feature = "redis"))]
fn shown(keys: &[Vec<u8>]) -> Vec<String> {
    keys.iter().map(|key| String::from_utf8_lossy(key).into_owned()).collect()
}

#[cfg(feature = "redis")]
async fn redis() -> Result<Arc<dyn Stage>, Failure> {
    let server = lock_lab::Redis::start().await?;
    Ok(Arc::new(Single::new(server, server::PLAIN, connect, redis_left).await?))
}

#[cfg(feature = "etcd")]
fn etcd_left(server: &lock_lab::Etcd) -> Leftovers<'_> {
    Box::pin(async move {
        let mut left = shown(&server.keys().await?);
        left.extend(server.leases().await?.iter().map(|lease| format!("lease {lease:x}")));
        Ok(left)
    })
}

#[cfg(feature = "etcd")]
async fn etcd() -> Result<Arc<dyn Stage>, Failure> {
    let server = lock_lab::Etcd::start().await?;
    Ok(Arc::new(Single::new(server, server::PLAIN, connect, etcd_left).await?))
}

/// Before 3.4.31 and 3.5.13, a former leader that stood still revokes live leases (etcd#15247). The
/// holders get a report, some a little late. 3.4 measures leases by the wall clock.
#[cfg(feature = "etcd")]
async fn etcd_cluster() -> Result<Arc<dyn Stage>, Failure> {
    let early = Duration::from_millis(100);
    let terms = Terms { kinds: cluster::PLAIN, early, stall_alone: false };
    Ok(Arc::new(Nodes::new(lock_lab::Etcd::builder(), terms, connect, etcd_left).await?))
}

#[cfg(feature = "etcd")]
async fn etcd_3_5_cluster() -> Result<Arc<dyn Stage>, Failure> {
    let early = Duration::from_millis(100);
    let terms = Terms { kinds: cluster::WITH_WALL_CLOCK, early, stall_alone: false };
    Ok(Arc::new(Nodes::new(lock_lab::Etcd::builder().v3_5(), terms, connect, etcd_left).await?))
}

/// Nodes of sessions. The server removes the containers of names later.
#[cfg(feature = "zookeeper")]
fn zookeeper_left(server: &lock_lab::ZooKeeper) -> Leftovers<'_> {
    Box::pin(async move {
        let counters = server.counters().await?;
        let left = ["ephemerals", "sessions", "watches"].map(|what| (what, counters.get(what)));
        let left = left.into_iter().filter(|(_, count)| *count > 0);
        Ok(left.map(|(what, count)| format!("{count} {what}")).collect())
    })
}

#[cfg(feature = "zookeeper")]
async fn zookeeper() -> Result<Arc<dyn Stage>, Failure> {
    let server = lock_lab::ZooKeeper::start().await?;
    Ok(Arc::new(Single::new(server, server::WITH_WALL_CLOCK, connect, zookeeper_left).await?))
}

#[cfg(feature = "zookeeper")]
async fn zookeeper_cluster() -> Result<Arc<dyn Stage>, Failure> {
    let early = Duration::ZERO;
    let terms = Terms { kinds: cluster::WITH_WALL_CLOCK, early, stall_alone: true };
    Ok(Arc::new(Nodes::new(lock_lab::ZooKeeper::builder(), terms, connect, zookeeper_left).await?))
}

/// Names with rows that are not dead. Dead rows are ignored: the next attempt removes them.
#[cfg(any(feature = "postgres", feature = "mysql"))]
fn live_names(now: &str) -> String {
    format!("SELECT name FROM distlock_v1_entries WHERE expires > {now};")
}

#[cfg(feature = "postgres")]
async fn postgres() -> Result<Arc<dyn Stage>, Failure> {
    fn left(server: &lock_lab::Postgres) -> Leftovers<'_> {
        Box::pin(async move {
            let now = "extract(epoch FROM clock_timestamp()) * 1000000";
            Ok(server.sql(&live_names(now)).await?.lines().map(str::to_owned).collect())
        })
    }

    let server = lock_lab::Postgres::start().await?;
    Ok(Arc::new(Single::new(server, server::PLAIN, connect, left).await?))
}

#[cfg(feature = "mysql")]
async fn mariadb() -> Result<Arc<dyn Stage>, Failure> {
    fn left(server: &lock_lab::MariaDb) -> Leftovers<'_> {
        Box::pin(async move {
            let now = "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
            Ok(server.sql(&live_names(now)).await?.lines().map(str::to_owned).collect())
        })
    }

    let server = lock_lab::MariaDb::start().await?;
    Ok(Arc::new(Single::new(server, server::PLAIN, connect, left).await?))
}
