//! Distributed locks with fencing tokens: one contract over many stores, chosen by URL.
//!
//! ```
//! use std::time::Duration;
//! # use distlock::{FencingToken, Gate};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let orders = Gate::new(Vec::new());
//! let locks = distlock::connect("memory:").await?; // or etcd://.., redis://.., zookeeper://..
//! let guard = locks.lock("orders/42")?.ttl(Duration::from_secs(10)).acquire().await?;
//! orders.enter(guard.token(), |orders| orders.push("sold"))?; // rejects older tokens
//! guard.release().await?;
//! # Ok(()) }
//! ```
//!
//! | store | URL | feature | what it promises | what it costs: acquire and release; renewal of all locks of a client |
//! |---|---|---|---|---|
//! | this process | `memory:[NAME]` | `memory` (default) | first come, first served, by push; strict tokens; excludes the tasks of one process | nothing |
//! | a file of this machine ([SQLite](https://sqlite.org), Linux) | `sqlite:[PATH]` | `sqlite` (needs a C compiler to build) | first come, first served, by polling; strict tokens; excludes the processes of one machine | 2 transactions; 1 per TTL/8 |
//! | etcd 3.4 or newer | `etcd://HOST[:2379][,HOST..]` | `etcd` (needs protoc to build) | first come, first served, by push; strict tokens; survives the loss of a member where three vote | 2 transactions; 1 keep-alive per TTL/3 and TTL in use |
//! | a Redis server, 6.2 or newer | `redis://HOST[:6379][/DB]` | `redis` | first come, first served, by push; tokens as a best effort | 2 commands; 1 per TTL/3 |
//! | PostgreSQL 12 or newer | `postgres://HOST[:5432][/DB]` | `postgres` | first come, first served, by push; strict tokens | 2 messages; 1 per TTL/3 |
//! | MySQL 8, or MariaDB 10.11 or newer | `mysql://HOST[:3306]/DB` | `mysql` | first come, first served, by polling; strict tokens | 2 messages; 1 per TTL/8 |
//! | ZooKeeper 3.5 or newer | `zookeeper://HOST[:2181][,HOST..][/CHROOT]` | `zookeeper` | first come, first served, by push; strict tokens; survives the loss of a server where three vote | 3 requests; 8 to 16 small writes per TTL and TTL in use |
//!
//! All have exclusive and shared locks, semaphores, sets and elections; the feature `all` turns on
//! all seven. A store's promises depend on its deployment, and are a value: [`Locks::guarantees`].
//! [`Connect::require`] refuses a store that promises less than a program needs. `docs/stores` in
//! the repository has a page for each store: options, rights, promises, costs and limits. The front
//! page of each driver (`memory`, `etcd`, `redis`, `sql`, `zookeeper`) says how it works.
//!
//! A login is written `scheme://user:password@host`; a [`User`] and a [`Secret`] may also come from
//! a file or a variable. Every store takes `?ttl=15s`, the default TTL of its locks. A driver can
//! also be connected by its own type, `XLock::connect(XConfig)`, with a configuration from a URL,
//! from a file (feature `serde`), or from the program's own client.
//!
//! Three features are on by default: `memory`; `blocking`, the module for programs without async;
//! and `signal`, for [`Locks::close_on_signal`] and [`blocking::Locks::drain_on_signal`]. A program
//! with `default-features = false` names those that it uses.
//!
//! Four features are off by default. `metrics` counts and measures by the crate `metrics`;
//! `docs/metrics.md` in the repository lists what. `serde` writes and reads tokens, names, entries
//! and leaders, writes guarantees, and reads requirements, a [`StoreUrl`] and `XConfig`s from a
//! configuration. With `stream` an [`Observer`] is a `futures_core::Stream`. With `tls`, which
//! `all`, `mysql` and `postgres` bring along, connections can be encrypted: [`Tls`]. Without it,
//! whatever asks for that is refused.
//!
//! # Where to look
//!
//! | to | call |
//! |---|---|
//! | work under a lock, and be stopped when it is lost | [`Lock::run`], [`Lock::run_fallible`]; also of sets, semaphores and elections. [`LockGuard::run`] under a lock that is held already |
//! | hold it by hand | [`Lock::acquire`], [`Lock::try_acquire`]; [`LockGuard::release`], or drop the guard |
//! | hear that renewals fail, before the lock is lost | [`Held::at_risk`], [`Held::is_at_risk`] |
//! | do a job on the leader only | [`Election::run`], [`Election::keep_running`], [`Election::campaign`]; `docs/shutdown.md` ends it in order |
//! | refuse late writers | [`Held::token`] and [`FencingToken::as_i64`]; `docs/fencing.md` has the SQL |
//! | wait for a store that starts later | [`Connect::retry`], [`Connect::timeout`] |
//! | decide what to do with an error | [`Error::is_transient`], [`is_busy`](Error::is_busy), [`is_lost`](Error::is_lost), [`is_closed`](Error::is_closed); `docs/errors.md` has a table, and how long each call takes at the most |
//! | end a service | [`Locks::drain`], [`Locks::close`], [`Locks::close_on_signal`], without async [`blocking::Locks::drain_on_signal`]; `docs/shutdown.md` |
//! | tell whether the store is there | [`Locks::ping`], [`Locks::connection`], [`Locks::connections`] |
//! | watch locks in production | feature `metrics`, `docs/metrics.md`; the events of [`trace`](driver::trace) |
//! | test code that locks | a store of the process, `memory:NAME`; `docs/testing.md` |
//! | see or end what others hold | [`Locks::inspect`], [`Locks::names`], [`Locks::revoke`] |
//! | write a driver | the module [`driver`] |
//! | translate from etcd's Go package `concurrency` | `docs/from-etcd-go.md` |
//!
//! The pages in `docs/` are in the repository.
//!
//! # Leaving a lock to another process
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (old, new) = (distlock::connect("memory:ho").await?, distlock::connect("memory:ho").await?);
//! let guard = old.lock("deploy")?.acquire().await?;
//! let token = guard.token();
//! let text = guard.detach().await?.to_string(); // for an environment variable, say
//! old.close().await?;
//!
//! // Another process, within one TTL:
//! let guard = new.adopt(&text.parse()?).await?;
//! assert_eq!(guard.token(), token);
//! assert!(new.adopt(&text.parse()?).await.is_err()); // a ticket is used once
//! # Ok(()) }
//! ```
//!
//! # What a lease does not promise
//!
//! A holder can be paused past its TTL and write late. No client library can prevent that. This is
//! why every grant carries a [`FencingToken`] for the resource to check, and why [`Lock::run`]
//! stops the work at the safe deadline.

#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "blocking")]
pub mod blocking;
mod connect;
pub mod driver;
#[cfg(feature = "_server")]
mod other_server;
mod stores;

pub use lock_core::{
    BoxFuture, ClockJumps, ClosedBy, Connect, ConnectionState, Effect, Election, Encryption, Entry,
    Error, Facts, Fairness, Fencing, FencingToken, FixedTerm, Gate, Guarantees, Held, HeldSet,
    Holder, Kind, Layout, Leader, Leadership, Leading, Lock, LockGuard, LockKind, LockName,
    LockSet, LockSetGuard, Locks, LossReason, LossSignal, Mark, Observer, Once, OncePer, Overlap,
    Owner, Pem, Requirement, Result, Secret, Semaphore, StaleToken, StoreUrl, Survives, Term,
    Ticket, Timeouts, Tls, TokenFloor, User, Wake,
};
#[cfg(feature = "etcd")]
pub use lock_etcd as etcd;
#[cfg(feature = "memory")]
pub use lock_memory as memory;
#[cfg(feature = "redis")]
pub use lock_redis as redis;
#[cfg(any(feature = "sqlite", feature = "mysql", feature = "postgres"))]
pub use lock_sql as sql;
#[cfg(feature = "zookeeper")]
pub use lock_zk as zookeeper;

pub use crate::{
    connect::connect,
    stores::{Deployment, STORES, Store},
};
