//! The Redis driver of distlock: a plain `SET NX PX` key with a fair queue beside it.
//!
//! A client renews the locks that it holds every third of a TTL, until they are released: what other
//! libraries call a watchdog. A holder that dies frees its lock after a TTL.
//!
//! # Connect
//!
//! ```no_run
//! # mod distlock { pub use lock_core::*; pub use lock_redis as redis; }
//! use distlock::{Locks, StoreUrl, redis::{RedisConfig, RedisLock}};
//!
//! # async fn example() -> lock_core::Result<()> {
//! let config = RedisConfig::from_url(&StoreUrl::parse("redis://127.0.0.1:6379?ttl=10s")?)?;
//! let locks = Locks::new(RedisLock::connect(config).await?);
//! let guard = locks.lock("orders/42")?.acquire().await?;
//! guard.release().await?;
//! # Ok(()) }
//! ```
//!
//! ## Your own client
//!
//! [`RedisLock::with_client`] and [`RedisConfig::from_client`] take a `client::Client`. A `Client`
//! has no connections: it only knows where the server is. The locks open one connection of their
//! own to that server.
//!
//! ```no_run
//! # mod distlock { pub use lock_core::*; pub use lock_redis as redis; }
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use distlock::{Locks, redis::{RedisLock, client::Client}};
//!
//! let client = Client::open("redis://me:secret@10.0.0.7/2")?; // the program's own, for its data
//! let locks = Locks::new(RedisLock::with_client(&client).await?);
//! # Ok(()) }
//! ```
//!
//! | part of the client | use |
//! |---|---|
//! | address, TLS with its certificates, Unix socket | used, also for each later connection |
//! | user, password, database | used; a value set in [`RedisConfig`] takes precedence |
//! | TCP keep-alive, `TCP_USER_TIMEOUT` | used; no-delay is on, linger is zero |
//! | protocol | RESP3 in the queue mode, for pushes; RESP2 in the simple mode |
//! | timeouts, retries | not used: locks have limits of their own |
//! | name resolver, password provider | options of a connection: [`RedisConfig::connection`] |
//! | connections, pools | not used: closing them or dropping the client does not affect the locks, and [`Locks::close`](lock_core::Locks::close) does not affect them |
//!
//! A `MultiplexedConnection` or a `ConnectionManager` cannot be shared: its receiver of pushes is
//! fixed when it is made, its limit of 500 ms would end requests that locks wait for, and one that
//! reconnects by itself would send a request after the server has ended its previous connection.
//! Pass the client itself. Through a Unix socket, a request that a broken connection has left
//! behind ends with its TTL, since all such connections have the same address.
//!
//! The client's version must be the driver's: use `distlock::redis::client`, or the same major
//! version of `redis`. A client's TLS is a feature of that crate (`tokio-rustls-comp`). Your program
//! switches it on. The feature `tls` of this crate is for connections by [`RedisConfig`].
//!
//! ## A majority of independent servers
//!
//! [`Redlock`] keeps each lock by the votes of a majority of three to fifteen servers that know
//! nothing of each other: `redlock://n1,n2,n3,n4,n5`. It has exclusive locks only, without order.
//! [`RedlockConfig`] has its options, and `docs/stores/redlock.md` its promises. The rest of this
//! page is about the other deployments.
//!
//! # Guarantees
//!
//! Waiters get the lock in the order of their arrival. A push wakes a waiter. Tokens rise as a best
//! effort. A held lock survives a restart if the server has each write on disk first. A failover
//! loses none with `wait_replicas` of all replicas only, and then a lock ends unless the dead node
//! is back within its TTL. A holder learns of a loss from its next renewal, or from its own
//! deadline. The server ends a fixed term. In the simple mode there are exclusive locks only,
//! without order, and waiters poll.
//!
//! [`Guarantees::overlaps`](lock_core::Guarantees::overlaps) says what the server may do, as
//! deployed. The page `docs/stores/redis.md` of the repository has the promises, limits and costs
//! in full, and what happens with Sentinel and with `wait_replicas`; `docs/stores/redis-cluster.md`
//! says what differs in a Cluster.
//!
//! # Options
//!
//! `redis://[[user][:password]@]host[:port][/database]`, or `valkey://..`;
//! `redis+sentinel://[[user][:password]@]sentinel[:port][,..]/service[/database]`;
//! `redis+cluster://[[user][:password]@]host[:port][,..]`; each with `?option=value&..`. The fields
//! of [`RedisConfig`] have the same names, and [`Target`] names the servers. `docs/stores/redis.md`
//! has the table. [`Tls`](lock_core::Tls), [`Timeouts`](lock_core::Timeouts),
//! [`User`](lock_core::User) and [`Secret`](lock_core::Secret) are those of all drivers.
//!
//! # Store set-up and rights
//!
//! One server, the sentinels of a service, or some nodes of a cluster: Redis 6.2, or one with the
//! same protocol (`SET .. GET`). The user needs the lock's keys; the key of the token floor
//! (`~?floor`, where `?` stands for the byte FF, with a prefix `~<prefix>?floor`), which all
//! scripts but one use even if no floor was raised; the channels `&distlock:*`; and scripts.
//! `docs/stores/redis.md` has the lines of the ACL, also for sentinels.
//!
//! # Implementation
//!
//! ## How it works
//!
//! The lock is a plain string key, exactly what `SET key token NX PX ttl` leaves, and it is
//! released by compare-and-delete. So clients of other languages on the same key exclude distlock,
//! and distlock excludes them. The queue is stored beside it. A release gives the key straight to
//! the first waiter and notifies it by a push, so no waiter polls and none overtakes. One script
//! call per verb: an uncontended acquire and release are two commands, for every kind of lock. One
//! call every third of a TTL renews up to 1000 exclusive locks, or 200 others, and keeps all
//! waiting attempts of a client alive; it also repairs lost pushes. Each renewal of a waiter
//! removes dead attempts from the first 32 places and from one other page of 32, a different one
//! each time.
//!
//! Renewals, conversions, releases and revokes go first. At most 64 acquires and looks are in
//! flight per client. More wait in this process, in order; one that is cancelled there is never
//! sent. A connection counts as broken when the server is silent for a third of a TTL (100 ms to 2
//! s), or does not answer one request for three times as long though it answers others. Up to 64
//! releases at a time are sent one by one; while there are more, one command carries 200.
//!
//! Readers, and holders of permits, hold a name as a group. While the group has members, the lock's
//! key has the group's value, so a foreign client sees an exclusive holder. The members hold only
//! while the key has exactly that value: if it is deleted, evicted or overwritten, all of them lose
//! the lock. Each member's share ends with its own TTL. A release lets in all waiters at the head
//! of the queue that fit.
//!
//! An election is an exclusive lock with a value, which is stored beside its key and lives as long.
//! The script that makes a leader, changes its value or ends it also publishes an empty push, on a
//! channel of the name and the database. That is a hint: each observer then looks at the server (two
//! commands), once for all hints that came before. It looks also when the leader's lock would
//! expire, after a reconnect, and every 2.5 to 5 s. The only holder of a lock without a value leads
//! with an empty one. A foreign holder has the token of the last grant.
//!
//! Each grant's token is the server's clock in microseconds, or the last token plus one, whichever
//! is greater.
//!
//! [Names in use](lock_core::DistributedLock::names) come from a scan of all keys of the database
//! (`SCAN`, twice). Every key that starts with the prefix and could be a lock's key counts, so a
//! database with other data needs a prefix. If the answer to a
//! [revoke](lock_core::DistributedLock::revoke) is lost, the command is sent again. If it finds
//! nothing then, the result is not known ([`Error::Unavailable`](lock_core::Error::Unavailable),
//! effect unknown).
//!
//! Pushes need RESP3 (`HELLO`). A server or a proxy without it is refused, except in the simple
//! mode.
//!
//! Connecting loads the three scripts of an uncontended lock unless the server has them. Each other
//! script is loaded when it is called first, by one more command.
//!
//! ## Keys (layout version 1)
//!
//! | key | type | content |
//! |---|---|---|
//! | `K` = prefix + name | string | `<client>:<attempt>` of the holder (`:<attempt>` in the simple mode), `s:<group>` of readers, `p<limit>:<group>` of permits; expires with the TTL, of a group with the longest |
//! | `{K}` FF `queue` | list | the waiting attempts in order |
//! | `{K}` FF `waiting` | hash | per waiting attempt: alive until, TTL, since when, kind, client, the candidate's value; the holder's description, if it is no leader |
//! | `{K}` FF `holders` | sorted set | the attempts that hold it together (members), each with the time until which it is alive; expires with `K` |
//! | `{K}` FF `members` | hash | per member: token, kind, client; the value of `K` by which they hold; the permits taken; expires with `K` |
//! | `{K}` FF `leader` | hash | the leader's ticket, token, database, client, value, and how often that was changed; expires with `K` |
//! | `{K}` FF `fence` | string | the last token; expires a day after the last grant |
//! | `{K}` FF `done` | string | the mark of work that is done once per period: token, when it was written, when it ends (ms since 1970), host; expires at its end |
//! | prefix + FF `floor` | string | after the token floor was raised: the offset added to the server's time, and the highest floor |
//! | `{distlock}` FF `client:<client>` | string | a client's description; expires after an hour |
//!
//! FF is the byte 0xFF, which no name contains, so no name can be another's companion. All keys of
//! a name are in one cluster slot: a `K` with a hash tag of its own keeps it, and its companions
//! are `K` FF FF `queue` and so on; a `K` with a `}` but no tag gets a tag that leads to its slot.
//!
//! The fence expires a day after the last grant, so there are as many fences as names in a day
//! (about 100 bytes each). The next token after that is the server's time. It is above the last
//! token unless the server's clock was set back by more than has passed since: by a day at least.
//! While a lock is held, a renewal keeps its fence, three times a day. Queues expire two days after
//! the last renewal of any waiter.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::large_futures))]

mod acquire;
mod config;
mod election;
mod error;
mod layout;
mod lease;
mod lock;
mod majority;
mod operators;
mod session;
mod wire;

/// The client library, in the version that this driver uses.
pub use redis as client;

pub use lock_core::Layout;

pub use crate::{
    config::{Address, Mode, RedisConfig, Target},
    lease::RedisLease,
    lock::RedisLock,
    majority::{Redlock, RedlockConfig},
};
