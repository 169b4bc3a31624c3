//! The ZooKeeper driver of distlock: a queue of ephemeral sequential nodes, the same as that of
//! Curator's `InterProcessMutex`.
//!
//! # Connect
//!
//! ```no_run
//! # mod distlock { pub use lock_core::*; pub use lock_zk as zookeeper; }
//! use distlock::{Locks, StoreUrl, zookeeper::{ZkConfig, ZkLock}};
//!
//! # async fn example() -> lock_core::Result<()> {
//! let url = StoreUrl::parse("zookeeper://127.0.0.1:2181")?;
//! let locks = Locks::new(ZkLock::connect(ZkConfig::from_url(&url)?).await?);
//! let guard = locks.lock("orders/42")?.acquire().await?;
//! guard.release().await
//! # }
//! ```
//!
//! ## Your own client
//!
//! [`ZkLock::with_connector`] and [`ZkConfig::from_connector`] take a `client::Connector`, and the
//! connect string. The locks make their sessions with it.
//!
//! ```no_run
//! # mod distlock { pub use lock_core::*; pub use lock_zk as zookeeper; }
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use distlock::{Locks, zookeeper::{ZkLock, client::Client}};
//!
//! let connector = Client::connector().with_auth("digest", b"me:secret");
//! let client = connector.clone().connect("10.0.0.1:2181").await?; // the program's own
//! let locks = Locks::new(ZkLock::with_connector(connector, "10.0.0.1:2181").await?);
//! # Ok(()) }
//! ```
//!
//! The locks do not take a `Client`. A client is one session, and a lock's TTL is the timeout of
//! its session: another TTL needs another session. A lock that is given up in an outage ends with
//! its session; in a session that the program keeps alive its node would stay, and no client would
//! get the lock. And a client shows neither its servers nor its login, so no session like it can be
//! made.
//!
//! | of the connector | |
//! |---|---|
//! | logins, SASL, TLS, server version | used for each session |
//! | session and connection timeout, read-only | not used: the TTL is the timeout |
//! | a session to continue, detached, failing eagerly | refused |
//!
//! The locks do not touch the program's own client and its session, nor the other way round. With
//! [`Access::Creator`] both need the same login. The four-letter commands are sent without TLS, so
//! hosts with `tcp+tls://` are not asked. If there is no other host,
//! [`ZkConfig::tick`](ZkConfig#structfield.tick) must be given, TTLs are 2 to 20 ticks, and the
//! servers count as an ensemble. The program switches on the client crate's feature `tls`.
//!
//! # Guarantees
//!
//! First come, first served; a push wakes a waiter. Tokens always rise. A held lock survives a
//! restart of a server, and the loss of a server where three vote. A holder learns of its loss from
//! a watch on its node, and from its own deadline. The client ends a fixed term. The page
//! `docs/stores/zookeeper.md` of the repository has the promises, limits and costs in full.
//!
//! ## What a TTL means here
//!
//! ZooKeeper's timeout belongs to the session, so a client has one session per TTL in use, at most
//! eight. [`ZkLock::connect`] asks the server for the range of its timeouts, and a TTL outside of
//! it is an error that names it. The server notices a dead client at the first tick after its TTL;
//! [`expiry_slack`](lock_core::Guarantees::expiry_slack) says how much later that may be. ZooKeeper
//! tells no client when it last heard of another client's session, nor when a node was deleted. So
//! `inspect` shows no [`ttl_left`](lock_core::Entry::ttl_left), and the time of a grant only of a
//! holder that is alone in the queue since it came, and of permits that other attempts may have
//! seen waiting.
//!
//! ## What moves a deadline
//!
//! The leader of an ensemble ends sessions, and an answer alone proves nothing about it: a follower
//! that is cut off answers reads for `syncLimit` ticks. So a renewal is a write, a transaction that
//! asks for the locks' directory and changes nothing, and it takes three answered requests to move
//! a deadline: `session/proof.rs` has the rule and what it relies on, and a program model in
//! `tests/model` tries it. A deadline is a tick and two renewals older than the last answer, so the
//! tick must be known, or guessed too long. Beside a standalone server any answer proves its send
//! time, and a renewal is a read. A server counts as standalone only if it says so (`srvr`) and has
//! no members in its configuration.
//!
//! One class of overlaps is left. A leader stalls while renewals are on their way, and answers two
//! of them before it pings its followers. Then it stalls again, or is cut off from the client's
//! follower before the answer to its ping comes, although it still has a majority. It may end the
//! session up to a TTL less than the length of its stall before the holder's deadline
//! ([`Overlap::LeaderStalled`](lock_core::Overlap::LeaderStalled)). A cut alone does not lead to
//! this, even one that heals, nor does a stall alone. Servers that lose touches when their tables
//! are swapped at the same moment are not covered either. The fencing token covers both.
//!
//! ## The token
//!
//! The fencing token is the node's `czxid`, the number of the transaction that created it. It rises
//! with every creation in the whole ensemble, also when nodes and directories are deleted; a node's
//! sequence begins again after its directory was deleted. A downgrade keeps the token, an upgrade
//! brings a new one. Once the [token floor](lock_core::TokenFloor) was raised, `<prefix>/%floor`
//! has the number that is added. A session reads it when it begins, and counts from it to its end:
//! each change of the node ends the session. A node that was made there without data, to give it an
//! ACL, is no record until a raise writes it; make it before there are locks. With
//! [`Layout::Native`] no name is `%floor` or `%done`, or begins with `%floor/` or `%done/`: the
//! latter has the marks of work that is done once per period, `<prefix>/%done/<name, escaped>`:
//! token, when it was written, when it ends (ms since 1970), and host. Such a period begins with
//! the node's `mtime`, and a reader compares its end with the `mtime` of a write of its own.
//!
//! A raise writes the record. Watches tell all clients in reach: their holders and waiters are told
//! as after a revoke, and go on in a session that counts from the new floor. Then the client that
//! raises the floor deletes the nodes that are older than the record, which are those of clients
//! that are cut off. A server tells a session of the change before it answers with anything later,
//! also after a reconnect. So a session from before the raise uses no node that was made after it,
//! however late its request arrives or its server lags; and all other nodes are older than the
//! record. Other clients see an older node without a token. A client that is cut off learns of the
//! raise when it is back, or by its deadlines; until then its holders work, as after a revoke. And
//! until its session ends it may pass their locks on to its own waiters, below the floor.
//!
//! # Options
//!
//! `zookeeper://[user:password@]host[:2181][,host..][/chroot][?option=value&..]`, or the fields of
//! [`ZkConfig`], which have the same names but for `acl`: that is `access`.
//! `docs/stores/zookeeper.md` has the table. [`Tls`](lock_core::Tls),
//! [`Timeouts`](lock_core::Timeouts), [`User`](lock_core::User) and [`Secret`](lock_core::Secret)
//! are those of all drivers.
//!
//! # Store set-up and rights
//!
//! ZooKeeper 3.5 or newer. The chroot must exist; the driver makes the directory of the locks. A
//! login must be allowed to read, create and delete below that, and to read `<prefix>/%floor`. The
//! four-letter commands `conf`, `srvr` and `mntr` tell the tick, whether the server stands alone,
//! and whether it writes to the disk; without them the driver assumes the safe case.
//! [`cautions`](lock_core::Guarantees::cautions) has what was found at connect.
//!
//! # Implementation
//!
//! ## Nodes (layout version 1)
//!
//! `<chroot><prefix>/<name>/_c_<attempt><kind>-lock-<sequence>`: one ephemeral sequential node per
//! attempt, in a directory per lock. `<kind>` is empty for an exclusive lock, `-r` for a shared
//! one, and `-p<weight>.<limit>` for permits. The sequence is the place in the queue: the first
//! ones hold the lock, as many as may hold it together. Directories are containers: the server
//! deletes them some time after they have become empty.
//!
//! The node's data names the client that made it (`{"holder":..,"since":..}`), and what the node
//! became: `"became":"shared"` for an exclusive lock that was downgraded, which keeps its name and
//! place; `"became":"admitted"` for permits that other attempts may have seen waiting before they
//! were granted. An upgrade creates a new, exclusive node behind the shared one, and deletes the
//! shared one once no other attempt turns out to be there. The new node names the grant that it has
//! taken over (`"attempt":..`).
//!
//! This is the layout of Curator's `InterProcessMutex`. Every other child of the directory that
//! ends in a sequence counts as an exclusive attempt. Names are percent-encoded: letters, digits,
//! `-`, `_` and `.` stay, everything else becomes `%XX`, so that any name is one directory. With
//! `layout=native` a name is a path; one that ZooKeeper forbids is refused, and so is
//! `a/x-0000000001`, which would count as an entry of the lock `a`.
//!
//! ## How it works
//!
//! Create and list are one flight (on Linux, where TCP_NODELAY can be set from outside the client
//! crate), and a release is a delete: three requests, of any kind of lock. Within a process a
//! release passes the lock on before the server has confirmed the deletion, and an exclusive
//! attempt right behind another one of its session lists nothing: it enters if that one held the
//! lock and passed it on. Otherwise it lists; until then its place is not known, and there is no
//! event `queued`. That nothing is in between follows from the two sequences, unless the directory
//! was deleted and made anew since. It was not if it had had at least as many entries before the
//! other one as the two tokens are apart: each entry takes a transaction. Where that is uncertain,
//! the list follows the creation. Foreign clients must not create several entries of a directory in
//! one transaction: the rule does not see those.
//!
//! Behind another client, a waiter watches the node that it waits for, and its own, unless a list
//! will show that. A release wakes the waiters that can enter, and no others, with two exceptions: a
//! writer behind several readers follows the last of them and looks again when that one is gone, and
//! the first waiter for permits also sees each arrival. Where a session has more than 52 KiB of
//! paths of its own nodes (about 450 locks), or 44 KiB of nodes that its waiters follow, or 16 KiB
//! that its observers follow, it asks for the others once a second.
//!
//! A try that comes at the same moment as another acquire may leave a node for one round trip, and
//! then two tries at the same moment may both find the lock busy. A set creates all of its nodes in
//! one transaction, at most 64, so of several sets at the same moment one gets all of its locks.
//!
//! At most 128 acquires, 32 tries and 64 looks of a session are in flight at the same time, each in
//! order. The rest of a burst waits in the process. After a removal that the server refuses, the
//! session takes no new locks; it ends with its last lock, and its end removes the node.
//!
//! ## Elections
//!
//! The node with the lowest sequence leads, if its entry is exclusive. Its newest value is in the
//! node from the beginning, behind the note and a newline. The holder of a plain lock leads with an
//! empty value, and a node of a foreign client with its data as a whole.
//!
//! A watch tells that something has changed, and the observer looks what is there now: it leaves
//! out what came and went between two looks. It has one watch: on the leader's node, on the
//! directory while there is no leader, or on the directory's creation. Its first look in each
//! session follows a `sync`, so it is not older than the call; within a session answers never go
//! back.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::large_futures))]

mod acquire;
mod config;
mod election;
mod error;
mod layout;
mod lease;
mod lock;
mod operators;
mod queue;
mod session;
mod wire;

/// The client crate, in the version that this crate uses: also for benchmarks of the bare client.
pub use zookeeper_client as client;

pub use lock_core::Layout;

pub use crate::{
    config::{Access, ZkConfig},
    lease::ZkLease,
    lock::ZkLock,
};
