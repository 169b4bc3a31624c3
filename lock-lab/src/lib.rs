//! Private Redis, etcd and ZooKeeper servers, and ways to break them.
//!
//! [`Redis`], [`Etcd`] and [`ZooKeeper`] each start one real server from the system's binary, on a
//! free loopback port and with a data directory of its own. All three are [`Server`]s: they can be
//! stopped, killed, restarted with their data, and asked for what they count. A [`Proxy`] between
//! a client and a server breaks the network.
//!
//! ```no_run
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! use lock_lab::{Proxy, Redis};
//!
//! let redis = Redis::start().await?;
//! let proxy = Proxy::start(redis.addr()).await?;
//! let url = redis.url_via(&proxy); // give this to the client under test
//! proxy.cut(); // no reset, no refusal: silence
//! redis.restart().await?; // kill -9, same port, same data
//! proxy.heal();
//! # Ok(()) }
//! ```
//!
//! # What stays behind
//!
//! Nothing. Dropping a server kills it and deletes its data, also when a test panics. If this whole
//! process is killed with SIGKILL, a watcher beside each server sees its pipe close and does the
//! same.

mod account;
mod ask;
mod builder;
mod client;
mod counters;
mod error;
mod etcd;
mod mariadb;
mod port;
mod postgres;
mod process;
mod program;
mod proxy;
mod redis;
mod server;
mod store;
mod template;
mod user;
mod zookeeper;

pub use self::{
    builder::Builder,
    counters::Counters,
    error::LabError,
    etcd::Etcd,
    mariadb::MariaDb,
    postgres::Postgres,
    proxy::{Proxy, ProxyStats},
    redis::Redis,
    server::Server,
    zookeeper::ZooKeeper,
};
