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
//! A `Client` cannot be taken. It is a session, and a lock's TTL is the timeout of its session, so
//! a session of another timeout has other locks. A lock that is given up in an outage ends with its
//! session; in a session that others keep alive its node would stay, and no client would get the
//! lock. And a client tells neither its servers nor its login, so that no session can be made like
//! it.
//!
//! | of the connector | |
//! |---|---|
//! | logins, SASL, TLS, server version | used for each session |
//! | session and connection timeout, read-only | not used: the TTL is the timeout |
//! | a session to continue, detached, failing eagerly | refused |
//!
//! The program's own client and its session are not touched by the locks, nor the other way round.
//! With [`Access::Creator`] both need the same login. The four-letter commands are sent without
//! TLS: hosts with `tcp+tls://` are not asked. If no other is left, [`ZkConfig::tick`](ZkConfig#structfield.tick) must be
//! given, TTLs are 2 to 20 ticks, and the servers count as an ensemble. The client crate's feature
//! `tls` is the program's to switch on.
//!
//! # Guarantees
//!
//! First come, first served; a waiter is woken by a push. Tokens always rise. A held lock survives
//! a restart of a server, and the loss of a server where three vote. A holder hears of its loss by
//! a watch on its node, and by its own deadline. The client ends a fixed term.
//!
//! ## What a TTL means here
//!
//! ZooKeeper's timeout belongs to the session, so a client has one session per TTL in use, at most
//! eight. The server clamps timeouts (by default to 2 to 20 ticks of 2 s); [`ZkLock::connect`] asks
//! it how, and a TTL outside of that is an error that names the range.
//!
//! The server notices a dead client at the first tick after its TTL;
//! [`expiry_slack`](lock_core::Guarantees::expiry_slack) says how much later that may be. A fixed
//! term is ended by the client, at its full length; if the client crashes or is cut off before, the
//! session's timeout ends it.
//!
//! When a session is given up, holders have been told by their deadlines, waiters are told at once,
//! and the next acquire opens a new one. How long a lock still lives without a renewal is not in
//! what `inspect` shows ([`Entry::ttl_left`](lock_core::Entry::ttl_left)): ZooKeeper tells no
//! client when the session of another was last heard of. The time of a grant is known only of a
//! holder that is alone in the queue, if no attempt has come or gone since (`inspect` asks the
//! directory for that, one read more), and of permits that others have waited for: when a node was
//! deleted is written nowhere.
//!
//! ## What moves a deadline
//!
//! The leader of an ensemble ends sessions, and counts from the last time it was told that they are
//! alive. Followers tell it when they answer its pings, twice per tick. So an answer alone proves
//! nothing about the leader: a follower that is cut off answers reads for `syncLimit` ticks, and a
//! leader that is cut off answers reads and `sync` for about as long, while the others end the
//! session.
//!
//! So only a write proves something: it is answered when a majority has it, and no later leader
//! counted before. An answered request, then an answered write that was sent at least a tick later,
//! and then an answered write that was sent after that, prove that the leader was told of the first
//! one; the deadline is the send time of the first one plus the TTL. A renewal is such a write. It
//! is a transaction that checks that `/` exists and changes nothing. A standalone server counts
//! from each request, so there any answer proves its send time, and a renewal is a read. A server
//! is taken for one only if it says so (`srvr`) and has no members in its configuration; before
//! 3.5, or if either is forbidden, it is treated like an ensemble. A program model in `tests/model`
//! tries this rule, and weaker ones.
//!
//! - **A deadline is a tick and two renewals older than the last answer.** A lock of 15 s has about
//!   9 s or more before it with the usual tick of 2 s, and a lock of four ticks about 2 of them.
//!   That is how long an outage may last, and the client crate needs up to two fifths of the TTL to
//!   leave a server that is silent: give at least six ticks if locks shall survive that. TTLs below
//!   three ticks are refused.
//! - **The tick must be known, or guessed too long.** The command `conf` tells it, if the server
//!   permits that (`4lw.commands.whitelist`). Otherwise it is half of the shortest session timeout
//!   or a twentieth of the longest, whichever is longer, and at least 3 s unless the longest is ten
//!   times the shortest, as it is by default. That is too short only if `minSessionTimeout` and
//!   `maxSessionTimeout` are both set to less than they are by default; it is far too long if only
//!   `maxSessionTimeout` is set, and to much more. In both cases give the option `tick`.
//! - **All servers must grant the same timeouts.** A session that moves to a server with a lower
//!   `maxSessionTimeout` is cut to it, and the client is not told.
//! - **Observers that follow an observer master** (`observerMasterPort`) are told of twice as late.
//!   Give twice the tick by the option `tick`, or do not connect to them.
//!
//! What is left: a leader that stalls while renewals are on their way, answers two of them before
//! it pings its followers, and then stalls again or is cut off from the client's follower before
//! the answer to its ping comes, although it still has a majority. It may end the session up to a
//! TTL less than the length of its stall before the holder's deadline
//! ([`Overlap::LeaderStalled`](lock_core::Overlap::LeaderStalled)). A cut alone does not lead to
//! it, also one that heals, nor does a stall alone. Servers that lose touches when their tables are
//! swapped at the same moment are not covered either. The fencing token covers both.
//!
//! ## The token
//!
//! The fencing token is the node's `czxid`, the number of the transaction that created it. It rises
//! with every creation in the whole ensemble, whatever happens to nodes and directories; the
//! sequence begins again when a directory was deleted. A downgrade keeps the token, an upgrade
//! brings a new one. Once the [token floor](lock_core::TokenFloor) was raised, `<prefix>/%floor`
//! has the number that is added; each session watches it. A login must be allowed to read it. A
//! node that was made there without data, to give it an ACL, is no record until a raise writes it.
//! With [`Layout::Native`] no name begins with `%floor/` or `%floor-`, or is `%floor`.
//!
//! A node that is older than the record counts from an earlier floor, and is about to be removed.
//! Its holder knows its token; to others it is shown without one. A client that learns of the raise
//! before it knows of such a node of its own removes it, and enters anew.
//!
//! To see the floor makes a node `%floor-<uuid>` for a moment, whose `czxid` is the newest. A login
//! that may not is told what the directories show, at two requests for each.
//!
//! # Options
//!
//! `zookeeper://[user:password@]host[:2181][,host..][/chroot][?option=value&..]`, or the fields of
//! [`ZkConfig`], which have the same names but for `acl`: that is `access`. The login is used for
//! ZooKeeper's `digest` scheme.
//!
//! | option | meaning | default |
//! |---|---|---|
//! | `prefix` | directory of the locks, below the chroot | `/locks` |
//! | `layout` | `escaped`: one directory per name, percent-encoded; `native`: the name is a path | `escaped` |
//! | `ttl` | TTL of a lock whose builder names none | 15 s, or what the server grants for it |
//! | `tick` | `tickTime` of the servers, for those that do not tell it | as told, or guessed from the timeouts |
//! | `acl` | `open`: any login may touch our nodes; `creator`: our login only | `open` |
//!
//! # Store set-up and rights
//!
//! ZooKeeper 3.5 or newer. The chroot must exist; the driver makes the directory of the locks. A
//! login must be allowed to read, create and delete below that, and to read `<prefix>/%floor` and
//! `/`. The four-letter commands `conf` and `srvr` (`4lw.commands.whitelist`) tell the driver the
//! tick and whether the server stands alone; without them it takes the safe side. All servers must
//! have the same session timeouts.
//!
//! # Implementation
//!
//! ## Nodes (layout version 1)
//!
//! `<chroot><prefix>/<name>/_c_<attempt><kind>-lock-<sequence>`: one ephemeral sequential node per
//! attempt, in a directory per lock. `<kind>` is empty for an exclusive lock, `-r` for a shared
//! one, and `-p<weight>.<limit>` for permits of a semaphore. The sequence is the place in the
//! queue: the first ones hold the lock, as many as may hold it together. Directories are
//! containers: the server deletes them some time after they have become empty.
//!
//! The node's data says what client made it (`{"holder":..,"since":..}`), and what has become of
//! it: `"became":"shared"` for an exclusive lock that was downgraded, which keeps its name and
//! place; `"became":"admitted"` for permits that were granted while others may have seen them
//! waiting. An upgrade is a new, exclusive node behind the shared one, which goes once it has
//! turned out that no other attempt was there; it names the grant that it has taken over
//! (`"attempt":..`).
//!
//! This is the layout of Curator's `InterProcessMutex`, so Curator and this crate exclude each
//! other and queue up together on the same path; Curator takes each of our nodes, of whatever kind,
//! for an exclusive lock. So does kazoo's `Lock(path, extra_lock_patterns=["-lock-"])`; without
//! that argument kazoo counts its own nodes only, and would take a lock that is held here. Every
//! other child that ends in a sequence counts as an attempt for the lock alone: also the readers
//! and the semaphores of Curator and kazoo.
//!
//! Names are percent-encoded: letters, digits, `-`, `_` and `.` stay, everything else becomes
//! `%XX`, so that any name is one directory. With `layout=native` a name is a path, as Curator and
//! kazoo take it; what ZooKeeper forbids in a path is refused, and so is `a/x-0000000001`, which
//! would count as an entry of the lock `a`.
//!
//! ## Requests
//!
//! | | requests |
//! |---|---|
//! | acquire and release, of any kind | create and list in one flight, then delete: 3 |
//! | with others of the same client before it | the same 3: a release passes the lock on within the process, before the server has confirmed the deletion |
//! | behind another client | two more, a watch on the node that it waits for and one on its own; a second list if that one goes before the own watch is set, or was not the last one before it |
//! | first in line for permits of other clients | a watch on the directory, and a list per arrival or departure |
//! | permits granted after a wait, if there are more | 1 write, so that the next one is first in line: it reads that, and watches the directory |
//! | try, if it is refused | 1 list, 2 reads for a reader behind a writer; nothing is written |
//! | try, if it is granted | 1 list more than an acquire, 2 reads more beside a downgraded writer |
//! | a set of n locks that are free, acquire and release | 3n + 1: lists, then one creation with lists, then deletions, each in one flight; before ZooKeeper 3.9 a stat more, in a flight of its own |
//! | such a set, if it is refused | n lists; nothing is written |
//! | downgrade | 1 |
//! | upgrade | 1 list; if no other attempt is there create, list and delete |
//! | names in use | 1 list, and 1 per directory |
//! | revoke | sync and list in one flight, then delete; 1 or 2 reads more for a lock that was upgraded, or if there is no such attempt |
//! | waiting or holding for more than 100 ms | once 1, a watch on the own node, for operators that delete it, unless it is set already; where a session has more than 112 KiB of watched paths (about 1,000 locks), 1 per second for all others instead, which are told within a second |
//! | waiting for more than one TTL | 1 per TTL, up to 4 for permits |
//! | a session that holds or waits, beside an ensemble | 8 to 16 writes of about 100 bytes per TTL (at 15 s and a tick of 2 s: 1 in 1.1 s), however many locks it holds; fewer as far as acquires and releases are writes, too |
//! | an idle session, or one beside a standalone server | 1 read per eighth of the TTL, instead of the client crate's pings |
//! | connect | `conf`; if that is not permitted 2 sessions that are closed at once; 1 session, 1 sync, 4 reads; `srvr` to each address, and once more if there are no members |
//! | another session, and each new connection of one | 1 read; `srvr` to each address if there are no members |
//! | a wait in vain | 2 reads, shared by all that end at the same time |
//! | a removal that the server refuses | 1 per TTL (1 s to 10 s) until it is permitted, for up to 64 nodes |
//! | all locks of a session are lost in an outage | nothing: the nodes go with the session |
//!
//! At most 128 acquires, 32 tries and 64 looks of a session are in flight at the same time, each in
//! order. The rest of a burst waits in the process, so that renewals, releases and revokes do not
//! wait behind it.
//!
//! After a removal that the server refuses, its session takes no new locks, and ends with its last
//! one, which removes the node.
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
//! The node with the lowest sequence leads, if it wants the lock alone. What it says lies in its
//! node from the beginning, behind the note and a newline: the newest value as it is, and before it
//! up to 15 earlier ones, as long as those make no more than 16 KiB. The note has their lengths, in
//! order, and the number of the first one (`{"holder":..,"since":..,"first":3,"values":[5,5,7]}`).
//! A value has at most 900,000 bytes, since ZooKeeper breaks connections over larger requests. The
//! holder of a plain lock leads with an empty value, and another client's node with its data as a
//! whole.
//!
//! A watch tells that a node has changed, not how often, and then the observer reads it. So it is
//! the earlier values in the node that let an observer report each value in order. It always
//! reports the newest one, and leaves out:
//!
//! - what is not in the node any more when it looks: more than 16 values between two looks, or
//!   fewer long ones. Looks are a round trip apart, an outage, or as long as its channel is not
//!   read, in which 64 changes may wait;
//! - what a leader said right before its end, if its node was gone when the observer looked, and so
//!   also a leader, or a vacancy, that was over by then;
//! - what another client's leader said before its newest value.
//!
//! An observer has one watch: on the leader's node, on the directory while there is no leader, or
//! on the directory's creation. It works in any session of the client, and in the next one when
//! that ends. Its first look in each session is behind a `sync`, and so not older than the
//! question.
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

/// The client crate, in the version that this crate uses: for whoever measures the floor.
pub use zookeeper_client as client;

pub use lock_core::Layout;

pub use crate::{
    config::{Access, ZkConfig},
    lease::ZkLease,
    lock::ZkLock,
};
