//! The Redis driver of distlock: a plain `SET NX PX` key with a fair queue beside it.
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
//! has no connections: it says where the server is. The locks make one connection of their own from
//! that.
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
//! | of the client | |
//! |---|---|
//! | address, TLS with its certificates, Unix socket | used, also for each later connection |
//! | user, password, database | used; what [`RedisConfig`] says instead goes first |
//! | TCP keep-alive, `TCP_USER_TIMEOUT` | used; no-delay is on, linger is zero |
//! | protocol | RESP3 in the queue mode, for pushes; the client's in the simple mode |
//! | timeouts, retries | not used: a lock's own limits count |
//! | resolver of names, provider of passwords | are options of a connection: [`RedisConfig::connection`] |
//! | connections, pools | not used: closing them, or dropping the client, is nothing to the locks; and [`Locks::close`](lock_core::Locks::close) is nothing to them |
//!
//! A `MultiplexedConnection` or a `ConnectionManager` cannot be shared. Its receiver of pushes was
//! chosen when it was made. Its limit of 500 ms would end requests that locks wait for. One that
//! reconnects by itself would send a request after the server has ended the connection before.
//! Neither tells its `Client`: pass that one. Through a Unix socket, a request that a broken
//! connection has left behind ends with its TTL, since all such connections have one address.
//!
//! The version must be the driver's: take `distlock::redis::client`, or the same major version of
//! `redis`. TLS is a feature of that crate (`tokio-rustls-comp`), which your program switches on.
//!
//! # Guarantees
//!
//! First come, first served; a waiter is woken by a push. Tokens rise as a best effort. A held lock
//! survives a restart if the server has each write on disk first, and no failover. A holder hears of
//! its loss by its next renewal, and by its own deadline. The server ends a fixed term. In the mode
//! `simple` there are exclusive locks only, in no order, and waiters poll.
//!
//! - A failover, an eviction (`maxmemory-policy` other than `noeviction`) or a restart without
//!   `appendfsync always` may lose locks that were granted. The fencing token covers that.
//!   [`Guarantees::overlaps`](lock_core::Guarantees::overlaps) says which of these the server may
//!   do: a failover if it has a replica or does not tell (`ROLE`), a restart unless each write is
//!   on disk first.
//! - What loses keys may lose the [token floor](lock_core::TokenFloor), too; then it is to be
//!   raised again. Clients of a version without it do not count from it. Tokens stay below 2^53.
//! - In the simple mode a holder hears of a revoked lock by its next renewal, every eighth of a
//!   TTL.
//! - A hand-over never leaves the key free, so foreign clients that poll wait as long as ours
//!   queue.
//! - A server whose clock jumps forward ends locks and waiting attempts early: their owners are
//!   told.
//!
//! # Options
//!
//! `redis://[user][:password@]host[:port][/database][?option=value&..]`, or the same with
//! `valkey://`
//!
//! | option | meaning | default |
//! |---|---|---|
//! | `ttl` | how long a lock outlives its last renewal, 200 ms to 24 h | `15s` |
//! | `prefix` | what every key starts with | none |
//! | `layout` | `escaped`: names are percent-encoded; `native`: names are keys as they are | `escaped` |
//! | `mode` | `queue`, or `simple`: polling, exclusive locks only, without order and without companion keys but the fence | `queue` |
//!
//! The fields of [`RedisConfig`] have the same names.
//!
//! # Store set-up and rights
//!
//! Needs Redis 6.2 or a server that speaks like it (RESP3, `SET .. GET`); one server. A node with
//! `cluster-enabled yes` is refused at connect. A server that became a replica is an outage: the
//! client connects anew, and resolves the host's name anew, until it finds a primary. A server that
//! refuses to write for a while (`MISCONF`, `NOREPLICAS`) is an outage, too.
//!
//! The user needs the lock's keys; the key of the token floor, which the scripts that grant, and
//! those that tell the holder, name, raised or not (`~?floor`, where `?` stands for the byte FF,
//! with a prefix `~<prefix>?floor`); `&distlock:*` channels (`PUBLISH`, `SUBSCRIBE`, and to observe
//! `UNSUBSCRIBE`); and scripts. With `CLIENT KILL` and `CLIENT INFO` a request that a broken
//! connection left behind is stopped at once, else it ends with its TTL.
//!
//! # Implementation
//!
//! ## Requests
//!
//! The lock is a plain string key, exactly what `SET key token NX PX ttl` leaves, and it is
//! released by compare-and-delete. So redis-py, redsync, redislock and hand-written scripts on the
//! same key exclude us, and we exclude them. A queue lies beside it: a release gives the key
//! straight to the first waiter and tells it by a push, so no waiter polls and none overtakes. One
//! script call per verb: an uncontended acquire and release are two commands, for every kind of
//! lock. One call every third of a TTL renews all locks and keeps all waiting attempts of a client
//! alive (up to 1000 exclusive locks, or 200 others, leaders among them); it also repairs lost
//! pushes. Any renewal of any waiter keeps its queue alive, and removes the dead from the first 32
//! places and from one other page of 32, a different one each time.
//!
//! Renewals, conversions, releases and revokes go before everything else. Of acquires and looks at
//! most 64 are in flight per client; more wait in this process, in order, and one that is cancelled
//! there is never sent. A connection counts as broken when the server is silent for a third of a
//! TTL (100 ms to 2 s), or does not answer one request for a whole one though it answers others.
//! Releases go by themselves, 64 at a time; while there are more, 200 go by one command. So 10,000
//! locks that are given back during an outage are some 110 commands after it.
//!
//! The end of a wait in vain asks for one holder and the places of the attempts that gave up: one
//! command and one for the holder's description. Its cost does not grow with the queue, except that
//! a place is searched for in a list: it is told up to the 10,000th. Of readers and holders of
//! permits it names one.
//!
//! [Several locks](lock_core::LockSet) that are all free are taken by one command too, up to 200 of
//! them, in both modes; it changes nothing if one of them is not. Each is released by a command of
//! its own, all at the same time.
//!
//! Readers, and holders of permits, hold a name together: as long as there are any, the lock's key
//! has their group's value, so a foreign client sees an exclusive holder. They hold only while it
//! has that very value, so a key that is deleted, evicted or overwritten ends them all; each one's
//! share ends with its own TTL. A release lets in what fits at the head of the queue: one command
//! and one push each, however many they are.
//!
//! An election is an exclusive lock whose value lies beside its key, and lives as long. Campaign,
//! proclaim and resign are one command each. The script that makes a leader, changes its value or
//! ends it also publishes that, value included, on a channel of the name and the database; so a
//! change costs one `PUBLISH` within the script, and its observers no request, however many they
//! are. An observer listens and looks at the server in one flight; it looks again (two commands)
//! when the leader's lock would expire, after a reconnect, when a push is missing, and every few
//! seconds (2.5 to 5). Whatever is not published is seen by such a look: a leader that died (when
//! its lock expires), a key that was deleted, and a holder of the lock without a value. Locks
//! without a value publish nothing and know of no observers; the only holder of one leads with an
//! empty value. A foreign holder has the token of the last grant, which is not greater than the
//! next leader's. An observer that does not read is told the newest when it reads again.
//!
//! Each grant's token is the server's clock in microseconds, or the last token plus one, whichever
//! is greater.
//!
//! [Names in use](lock_core::DistributedLock::names) are found by going through all keys of the
//! database (`SCAN`, twice). Every key that starts with the prefix and could be a lock's counts,
//! whatever is in it: a foreign client's lock looks like any other key. So a database with other
//! data needs a prefix. [Revoking](lock_core::DistributedLock::revoke) is one command, and a push
//! to the client that loses. If the answer to it is lost, it is asked again; if nothing is found
//! then, it says that it does not know ([`Error::Unavailable`](lock_core::Error::Unavailable),
//! effect unknown).
//!
//! Connecting gives the server the three scripts of an uncontended lock unless it has them. Each
//! other script follows when it is called first, by one command more.
//!
//! ## Keys (layout version 1)
//!
//! | key | type | content |
//! |---|---|---|
//! | `K` = prefix + name | string | `<client>:<attempt>` of the holder (`:<attempt>` in the simple mode), `s:<group>` of readers, `p<limit>:<group>` of permits; expires with the TTL, of a group with the longest |
//! | `{K}` FF `queue` | list | the waiting attempts in order |
//! | `{K}` FF `waiting` | hash | per waiting attempt: alive until, TTL, since when, kind, client, the candidate's value; what the holder says about itself, if it is no leader |
//! | `{K}` FF `holders` | sorted set | the attempts that hold it together, each with until when it is alive; expires with `K` |
//! | `{K}` FF `members` | hash | per each of them: token, kind, client; the value of `K` that they hold by; the permits taken; expires with `K` |
//! | `{K}` FF `leader` | hash | the leader's ticket, token, database, client, value, and how often that was changed; expires with `K` |
//! | `{K}` FF `fence` | string | the last token; expires a day after the last grant |
//! | prefix + FF `floor` | string | once the token floor was raised: what is added to the server's time, and what it was raised to |
//! | `{distlock}` FF `client:<client>` | string | what a client says about itself; expires after an hour |
//!
//! FF is the byte 0xFF, which no name contains, so no name can be another's companion. All keys of
//! a name are in one cluster slot: a `K` with a hash tag of its own keeps it, and its companions
//! are `K` FF FF `queue` and so on; a `K` with a `}` but no tag gets a tag that leads to its slot.
//!
//! The fence ends a day after the last grant, so there are as many of them as names in a day (about
//! 100 bytes each). Then the next token is the server's time, which is above the last one unless
//! the server's clock was set back by more than has passed since: by a day at least. While a lock
//! is held, a renewal keeps its fence, three times a day. A fence of an earlier version, which has
//! no end, gets one when the name is granted or renewed so next. Queues end two days after the last
//! renewal of any waiter.

mod acquire;
mod config;
mod election;
mod error;
mod layout;
mod lease;
mod lock;
mod operators;
mod session;
mod wire;

/// The client library, in the version that this driver uses.
pub use redis as client;

pub use lock_core::Layout;

pub use crate::{
    config::{Mode, RedisConfig},
    lease::RedisLease,
    lock::RedisLock,
};
