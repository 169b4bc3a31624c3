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
//! a watch on its node, and from its own deadline. The client ends a fixed term.
//!
//! ## What a TTL means here
//!
//! ZooKeeper's timeout belongs to the session, so a client has one session per TTL in use, at most
//! eight. The server clamps timeouts (by default to 2 to 20 ticks of 2 s). [`ZkLock::connect`] asks
//! it for the range, and a TTL outside of the range is an error that names it.
//!
//! The server notices a dead client at the first tick after its TTL;
//! [`expiry_slack`](lock_core::Guarantees::expiry_slack) says how much later that may be. The
//! client ends a fixed term, at its full length; if the client crashes or is cut off before, the
//! session's timeout ends it.
//!
//! When a session is given up, the deadlines of its holders have passed, its waiters get an error
//! at once, and the next acquire opens a new session. `inspect` does not show how long a lock still
//! lives without a renewal ([`Entry::ttl_left`](lock_core::Entry::ttl_left)): ZooKeeper tells no
//! client when it last heard of another client's session. ZooKeeper does not record when a node was
//! deleted, so `inspect` knows the time of a grant in two cases only. One is a holder that is alone
//! in the queue, if no attempt has come or gone since it came (this takes one read more, of the
//! directory). The other is permits that other attempts may have seen waiting.
//!
//! ## What moves a deadline
//!
//! The leader of an ensemble ends sessions. It counts from the last time that it was told that a
//! session is alive. Followers tell it when they answer its pings, twice per tick. So an answer
//! alone proves nothing about the leader: a follower that is cut off answers reads for `syncLimit`
//! ticks, and a leader that is cut off answers reads and `sync` for about as long, while the others
//! end the session.
//!
//! So only a write proves something: it is answered when a majority has it, and no later leader
//! counted before. A proof takes three answered requests: any request, then a write that is sent at
//! least a tick after the first answer, and then a write that is sent after the second answer. They
//! prove that the leader was told of the first request. The deadline is the send time of the first
//! request plus the TTL. A renewal is such a write: a transaction that asks for the locks'
//! directory and changes nothing. A refusal proves as much: the leader looks for the session before
//! it looks for permissions, and a majority confirms its refusal. A standalone server counts from
//! each request, so there any answer proves its send time, and a renewal is a read. A server counts
//! as standalone only if it says so (`srvr`) and has no members in its configuration; before 3.5,
//! or if either is forbidden, it is treated like an ensemble. A program model in `tests/model`
//! tries this rule, and weaker ones.
//!
//! - **A deadline is a tick and two renewals older than the last answer.** With the usual tick of 2
//!   s, a lock of 15 s has about 9 s or more left, and a lock of four ticks about two ticks. An
//!   outage may last that long. A client with several hosts leaves a silent server, and tries the
//!   silent ones of a minority in vain, within about half of the TTL: give at least six ticks, and
//!   3 s or more, to locks that must survive that. If the silent one is the leader, the others miss
//!   it after `syncLimit` ticks and then elect another one: give three times as long as these
//!   ticks, and 10 s or more. TTLs below three ticks are refused.
//! - **The tick must be known, or guessed too long.** The command `conf` tells it, if the server
//!   permits that (`4lw.commands.whitelist`). Otherwise it is half of the shortest session timeout
//!   or a twentieth of the longest, whichever is longer. It is at least 3 s unless the longest
//!   timeout is ten times the shortest, as it is by default. This guess is too short only if
//!   `minSessionTimeout` and `maxSessionTimeout` are both set to less than their defaults. It is
//!   far too long if only `maxSessionTimeout` is set, and to much more. In both cases give the
//!   option `tick`. It does not make a tick shorter that the servers tell.
//! - **All servers must grant the same timeouts.** A session that moves to a server with a lower
//!   `maxSessionTimeout` is cut to it, and the client is not told.
//! - **Observers that follow an observer master** (`observerMasterPort`): the leader learns of
//!   their sessions twice as late. Give twice the tick by the option `tick`, or do not connect to
//!   them.
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
//! has the number that is added; each session watches it. A login must be allowed to read it. A
//! node that was made there without data, to give it an ACL, is no record until a raise writes it.
//! With [`Layout::Native`] no name begins with `%floor/` or `%floor-`, or is `%floor`.
//!
//! A node that is older than the record counts from an earlier floor, and is about to be removed.
//! Its holder knows its token; other clients see it without a token. A client that learns of the
//! raise before it knows such a node of its own removes the node, and enters the queue again.
//!
//! A look at the floor creates a node `%floor-<uuid>` for a moment; its `czxid` is the newest. For
//! a login that may not create it, the driver looks at the directories instead, with two requests
//! each.
//!
//! # Options
//!
//! `zookeeper://[user:password@]host[:2181][,host..][/chroot][?option=value&..]`, or the fields of
//! [`ZkConfig`], which have the same names but for `acl`: that is `access`, and for
//! [`tls`](lock_core::Tls) and [`timeouts`](lock_core::Timeouts), which are grouped. The login is
//! used for ZooKeeper's `digest` scheme.
//!
//! | option | meaning | default |
//! |---|---|---|
//! | `prefix` | directory of the locks, below the chroot | `/locks` |
//! | `layout` | `escaped`: one directory per name, percent-encoded; `native`: the name is a path | `escaped` |
//! | `ttl` | TTL of a lock whose builder sets none | 15 s, or what the server grants for it |
//! | `tick` | `tickTime` of the servers, if they do not tell a longer one | as told, or guessed from the timeouts |
//! | `acl` | `open`: any login may touch our nodes; `creator`: our login only | `open` |
//! | `user_file`, `user_env` | where the user is, in the place of `user@` | none |
//! | `password_file`, `password_env` | where the password of the user is | none |
//! | `tls` | `verify`: TLS with a verified certificate (Linux); `off` | `off` |
//! | `ca` | file (PEM) with the authorities that may sign the server's certificate | those of the system |
//! | `cert`, `key` | files (PEM) with the client's certificate and its key | none |
//! | `server_name` | name that the server's certificate must have | the host |
//! | `connect_timeout` | longest time for a connection, 100 ms to 1 min | 3 s |
//! | `request_timeout` | how long a server may be silent before it is left, 100 ms to 1 min | a sixth of the TTL or less, but 500 ms or more; with one host two fifths of the TTL |
//!
//! ## TLS
//!
//! The client crate connects to a port of 127.0.0.1, and the driver speaks TLS from there to the
//! server, with rustls and ring. The driver serves its own process only: it looks for the other end
//! of each connection among the process's descriptors before it dials. The four-letter commands go
//! over TLS, too. The server needs Netty
//! (`serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory`) and `secureClientPort`.
//! Certificates are read for each connection.
//!
//! ## Logins
//!
//! User and password from files or from the environment are read anew for each session, and when
//! the server refuses a request: the session then logs in with them, too, and repeats the request.
//! So nodes may be given to a new password, or to another user, while locks are held. ZooKeeper
//! knows no wrong login: with it, a client is another user, who is
//! [`Denied`](lock_core::Error::Denied) where the nodes belong to the right one.
//!
//! # Store set-up and rights
//!
//! ZooKeeper 3.5 or newer. The chroot must exist; the driver makes the directory of the locks. A
//! login must be allowed to read, create and delete below that, and to read `<prefix>/%floor`. It
//! need not be able to read `/`. The four-letter commands `conf` and `srvr`
//! (`4lw.commands.whitelist`) tell the driver the tick and whether the server stands alone; without
//! them it assumes the safe case. `mntr` tells whether the servers write to the disk. All servers
//! must have the same session timeouts. [`cautions`](lock_core::Guarantees::cautions) has what was
//! found at connect.
//!
//! # Implementation
//!
//! ## Nodes (layout version 1)
//!
//! `<chroot><prefix>/<name>/_c_<attempt><kind>-lock-<sequence>`: one ephemeral sequential node per
//! attempt, in a directory per lock. `<kind>` is empty for an exclusive lock, `-r` for a shared
//! one, and `-p<weight>.<limit>` for permits of a semaphore. The sequence is the place in the
//! queue: the first ones hold the lock, as many as may hold it together. Directories are
//! containers: the server deletes them some time after they have become empty. It numbers 2^31
//! entries of a directory, and then gives numbers twice. So the last million is refused
//! ([`Rejected`](lock_core::Error::Rejected)) until the directory was deleted, and one of each
//! 100,000 entries tells of that from 100 million before the end on.
//!
//! The node's data names the client that made it (`{"holder":..,"since":..}`), and what the node
//! became: `"became":"shared"` for an exclusive lock that was downgraded, which keeps its name and
//! place; `"became":"admitted"` for permits that other attempts may have seen waiting before they
//! were granted. An upgrade creates a new, exclusive node behind the shared one, and deletes the
//! shared one once no other attempt turns out to be there. The new node names the grant that it has
//! taken over (`"attempt":..`).
//!
//! This is the layout of Curator's `InterProcessMutex`, so Curator and this crate exclude each
//! other and queue up together on the same path. Curator takes each of our nodes, of any kind, for
//! an exclusive lock. So does kazoo's `Lock(path, extra_lock_patterns=["-lock-"])`; without that
//! argument kazoo counts its own nodes only, and would take a lock that is held here. Every other
//! child that ends in a sequence counts as an exclusive attempt, also the readers and the
//! semaphores of Curator and kazoo.
//!
//! Names are percent-encoded: letters, digits, `-`, `_` and `.` stay, everything else becomes
//! `%XX`, so that any name is one directory. With `layout=native` a name is a path, as Curator and
//! kazoo take it; a name that ZooKeeper forbids as a path is refused, and so is `a/x-0000000001`,
//! which would count as an entry of the lock `a`.
//!
//! ## Requests
//!
//! | | requests |
//! |---|---|
//! | acquire and release, of any kind | create and list in one flight, then delete: 3 |
//! | the first acquire of a name, while it has no directory | 2 more: the directory is made with the node; before ZooKeeper 3.9 a stat more |
//! | with others of the same client before it | the same 3: a release passes the lock on within the process, before the server has confirmed the deletion |
//! | behind another client | two more, a watch on the node that it waits for and one on its own node; a second list if the first node goes before the own watch is set, or was not the last one ahead |
//! | first in line for permits of other clients | a watch on the directory, and a list per arrival or departure |
//! | permits granted after a wait, if the semaphore has more | 1 write, which makes the next waiter the first in line: it reads the write, and watches the directory |
//! | try, if it is refused | 1 list, 2 reads for a reader behind a writer; beside an ensemble a sync and the same again; nothing is written |
//! | try, if it is granted | 1 list more than an acquire, 2 reads more beside a downgraded writer |
//! | a set of n locks that are free, acquire and release | 3n + 1: lists, then one creation with lists, then deletions, each in one flight; before ZooKeeper 3.9 a stat more, in a flight of its own |
//! | such a set, if it is refused | n lists; beside an ensemble a sync and a list more for each name that is busy; nothing is written |
//! | downgrade | 1 |
//! | upgrade | 1 list; if no other attempt is there create, list and delete |
//! | names in use | 1 list, and 1 per directory |
//! | revoke | sync and list in one flight, then delete; 1 or 2 reads more for a lock that was upgraded, or if there is no such attempt |
//! | waiting or holding for more than 100 ms | 1 once, a watch on the own node that notices its deletion by an operator, unless it is set already; where a session has more than 56 KiB of paths of own nodes (about 500 locks), 1 per second for all other nodes instead, whose deletion is noticed within a second |
//! | waiting behind other clients where a session watches more than 56 KiB of their paths | 1 per second and waiter, without a watch |
//! | waiting for more than one TTL | 1 per TTL, up to 4 for permits |
//! | a session that holds or waits, beside an ensemble | 8 to 16 writes of about 100 bytes per TTL (at 15 s and a tick of 2 s: 1 in 1.1 s), however many locks it holds; fewer if acquires and releases write, too |
//! | an idle session, or one beside a standalone server | 1 read per eighth of the TTL, instead of the client crate's pings |
//! | connect | `conf`; if that is not permitted 2 sessions that are closed at once; 1 session, 1 sync, 4 reads, and 1 transaction that changes nothing if there is no prefix; `srvr`, `conf` and `mntr` to each address, and `srvr` once more if there are no members |
//! | another session | with several hosts `ruok` to each; 1 session |
//! | another session, and each new connection of one | 1 read; `srvr` to each address if there are no members |
//! | a wait in vain | 2 reads, shared by all that end at the same time |
//! | a removal that the server refuses | 1 per TTL (1 s to 10 s) until it is permitted, for up to 64 nodes |
//! | all locks of a session are lost in an outage | nothing: the nodes go with the session |
//!
//! At most 128 acquires, 32 tries and 64 looks of a session are in flight at the same time, each in
//! order. The rest of a burst waits in the process, so that renewals, releases and revokes do not
//! wait behind it.
//!
//! After a removal that the server refuses, the session takes no new locks. It ends with its last
//! lock, and its end removes the node.
//!
//! A release wakes the waiters that can enter, and no others: the next writer, all readers up to
//! it, or as many as the permits suffice for. Two things wake a waiter in vain: a writer behind
//! several readers follows the last of them and looks again when that one is gone, and the first
//! waiter for permits also sees each arrival.
//!
//! On Linux, where TCP_NODELAY can be set from outside the client crate, create and list take one
//! network round trip; elsewhere two.
//!
//! A try that comes at the same moment as another acquire may leave a node for one round trip, and
//! then two tries at the same moment may both find the lock busy. So may a try at the same moment
//! as an upgrade. Sets create all of their nodes in one transaction, at most 64, so of several sets
//! at the same moment, without other attempts, one gets all of its locks; one request removes the
//! nodes of the others.
//!
//! ## Elections
//!
//! The node with the lowest sequence leads, if its entry is exclusive. Its values are in the node
//! from the beginning, behind the note and a newline: up to 15 earlier values, as long as those
//! make no more than 16 KiB, and then the newest one as it is. The note has their lengths, in
//! order, and the number of the first one (`{"holder":..,"since":..,"first":3,"values":[5,5,7]}`).
//! A value has at most 512 KiB, and the description of a holder 64 KiB, since ZooKeeper breaks
//! connections over larger requests (`jute.maxbuffer`, by default 1 MiB). The holder of a plain
//! lock leads with an empty value, and a node of a foreign client with its data as a whole.
//!
//! A watch tells that a node has changed, but not how often. Then the observer reads the node, and
//! the earlier values in it let the observer report each value in order. It always reports the
//! newest one, and leaves out:
//!
//! - values that are not in the node any more when it looks: there were more than 16 values between
//!   two looks, or fewer long ones. Looks are apart by a round trip, by an outage, or by the time
//!   in which its channel, which holds 64 changes, is not read;
//! - the last values of a leader whose node was gone when the observer looked, and so also a whole
//!   leader, or a vacancy, that was over by then;
//! - earlier values of a foreign client's leader.
//!
//! An observer has one watch: on the leader's node, on the directory while there is no leader, or
//! on the directory's creation. It works in any session of the client, and in the next one when
//! that ends. Its first look in each session follows a `sync`, so it is not older than the call.
//!
//! | | requests |
//! |---|---|
//! | campaign and resign | as acquire and release |
//! | proclaim | 1; no candidate is woken by it, nor the leader's watch on its own node; only readers that wait for the same name look whether they may enter |
//! | the leader | sync, list, the leader's node with a watch, and the end of the watch: 4 |
//! | observe | the first 3 of these; then 1 per TTL while nothing changes, 2 or 3 while there is no leader |
//! | a proclamation, for each observer | 1 event and 1 read |
//! | a new leader, or none any more, for each observer | 1 event and 2 reads; up to 2 and 4 if the directory comes or goes, too |

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
