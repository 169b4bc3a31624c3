//! The etcd driver of distlock: a first-come-first-served queue by create revision, the same as
//! that of Go's `concurrency.Mutex` and `concurrency.Election`, of `etcdctl lock` and `etcdctl
//! elect`.
//!
//! # Connect
//!
//! ```no_run
//! # mod distlock { pub use lock_core::*; pub use lock_etcd as etcd; }
//! use distlock::{Locks, StoreUrl, etcd::{EtcdConfig, EtcdLock}};
//!
//! # async fn example() -> lock_core::Result<()> {
//! let config = EtcdConfig::from_url(&StoreUrl::parse("etcd://127.0.0.1:2379")?)?;
//! let locks = Locks::new(EtcdLock::connect(config).await?);
//! let guard = locks.lock("orders")?.acquire().await?;
//! println!("fencing token {}", guard.token());
//! guard.release().await
//! # }
//! ```
//!
//! ## Your own client
//!
//! There are two ways, for a `client::Client` tells neither its endpoints nor its options.
//!
//! ```no_run
//! # mod distlock { pub use lock_core::*; pub use lock_etcd as etcd; }
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use distlock::{Locks, etcd::{EtcdConfig, EtcdLock, client::{Client, ConnectOptions}}};
//!
//! let endpoints = ["10.0.0.1:2379", "10.0.0.2:2379"];
//! let options = ConnectOptions::new().with_user("me", "secret").with_require_leader(true);
//! let client = Client::connect(endpoints, Some(options.clone())).await?; // the program's own
//! // Better: connections of the locks' own, made in the same way.
//! let locks = Locks::new(EtcdLock::connect(EtcdConfig::from_options(endpoints, options)).await?);
//! // Or the client's connection, shared.
//! let locks = Locks::new(EtcdLock::with_client(&client).await?);
//! # Ok(()) }
//! ```
//!
//! | | [`EtcdConfig::from_options`] | [`EtcdConfig::from_client`] |
//! |---|---|---|
//! | connections | one of its own, to one member at a time | the client's; three streams and the requests on it |
//! | a member that is down | is left at once, and tried last | stays in turn: of three members, a third of the requests fails first and is sent again |
//! | a connection that is silent | is replaced after 2 s | is not, unless the client has `with_keep_alive` |
//! | a member without a leader | ends its streams | only with `with_require_leader(true)`; otherwise watches on it tell nothing until it is back, and holders hear of a loss by their renewals |
//! | login | of the options; a login that expires is renewed | the client's: `update_user` changes the locks' login, too; one that expires is renewed for both |
//! | TLS | of the options, `https://` endpoints | the client's |
//! | the client's request timeout | counts for each request, not for waits | the same |
//! | the client is dropped | nothing | nothing: the connection lasts as long as the locks |
//! | the runtime ends in which the client was connected | nothing, if it is not that of the locks | the connection is dead for good, and every call [`Error::Unavailable`](lock_core::Error::Unavailable): that runtime must live as long as the locks |
//! | all its endpoints are removed | nothing | an outage: locks are lost after their TTL |
//!
//! What is promised is the same: nothing is decided by which member answers, but by etcd's
//! revisions. Closing the locks leaves the client as it is. TLS is a feature of the client crate
//! (`tls-ring`, `tls-aws-lc`), which your program switches on.
//!
//! # Guarantees
//!
//! First come, first served; a waiter is woken by a push. Tokens always rise: they are create
//! revisions, plus the token floor. A held lock survives a restart of a member, and the loss of a
//! member where three vote. A holder hears of its loss by etcd's word, and by its own deadline.
//!
//! - A waiter is told at once when its session or its entry is gone; it is never queued again in
//!   silence.
//! - A holder is told of a lost lock by its own deadline, by the answer to a keep-alive, and by the
//!   watch of its key: for a hold of more than 50 ms as soon as etcd tells, before that within 150
//!   ms.
//! - A watch that etcd refuses, because the login has expired or the password was set anew, begins
//!   again with a new login, and what happened meanwhile is listed: one read for each name, and one
//!   login for all of them, at most one a second. If the login may not read the queue any more, its
//!   waiters end with `Denied`, and nothing else of the client is disturbed. Its holders keep the
//!   lock, and are *not told* if it is deleted or taken away meanwhile (event `unwatched`); the
//!   watch is tried again every 5 s.
//! - Current versions of etcd deny a *keep-alive* if any key of the lease may not be written any
//!   more (3.4.42, 3.5.28, 3.6.9 and newer), and the newest (3.4.44, 3.5.30, 3.6.12) every put with
//!   that lease, too. A client's locks with the same TTL share a lease: if a login loses the right
//!   to one of the names, all of them end within a TTL. Those with other TTLs do not.
//! - While etcd is out of reach each caller fails after its own TTL, with a session and without,
//!   and one that leaves does so at once; one request for a session is under way for all of them.
//!   Each client tries the endpoints in an order of its own, and one that failed last.
//! - A request whose answer is lost is resolved: it is sent again, or its entry is removed. After
//!   that it does nothing, however late it arrives: it makes no entry, and neither removes nor
//!   changes a later one. An upgrade that was refused does not happen later.
//! - A removal that etcd refuses, because a right was taken away, is tried again after 1 s and then
//!   every 2 to 30 s. Other grants of the session go on, no attempt begins in it any more, and the
//!   entry goes with the last of them.
//! - etcd does not end a session if the login may not write one of its keys any more. Its other
//!   entries are then removed by key when the client closes or the session has expired; that one,
//!   and whatever request arrives only then, ends with the lease, a TTL later at the most.
//! - An error says that nothing was done only if etcd says so. An answer of more than 4 MB is not
//!   taken: what an acquire lists is not read in pages, so one behind some 40,000 others is
//!   refused, and leaves nothing.
//! - An attempt that asks for permits with another limit than the first one in line is refused, and
//!   stands in the queue for a moment.
//! - An observer is told every change in order, also late if it does not look for a while. Only
//!   after an outage, or when what it has not taken yet was compacted, it is told the leader of
//!   that moment instead. The candidate that has etcd's next turn leads, perhaps before it knows.
//! - A proclaimed value is never replaced by an older one, however late a request comes.
//! - **Fixed terms** end by the client's own delete. If the client crashes first, the lock is free
//!   when the session ends, one TTL after its last keep-alive.
//! - **TTLs** are whole seconds, from the shortest that etcd grants (1.5 elections: 2 s by default)
//!   to 1 h. Others are refused, not rounded. A client uses at most 64 different ones at a time.
//! - **Expiry** may come 1 s after the TTL, and one TTL later than that if the leader changed
//!   meanwhile: a new leader gives every lease its full TTL again.
//! - **Closing** tries for 3 s. Nothing is left under way 2 s later, also in an outage.
//! - `Guarantees` say what is deployed: `survives.failover` needs three voting members, and
//!   `overlaps` depends on the version. A login that may not know gets the lesser promise. Versions
//!   with a fault that concerns locks are traced at connect (event `caution`).
//!
//! ## A lease that is revoked early
//!
//! Whatever revokes a living lease, or deletes its keys, lets the next waiter in before the holder
//! is told: an operator, or a former leader of etcd that stalled (see below). The holder is told by
//! the watch of its key, within milliseconds as a rule: messages of the watches are read before
//! anything else is sent on that stream. The fencing token rejects what it writes until then.
//!
//! A grant may come *after* such a deletion: its answer was on the way, or it was handed over
//! within the client, which does not ask etcd. It is valid for a moment, and its loss is told as
//! any other: the watch begins at the revision of the entry, and so tells what happened before it
//! began. A hold that never waited is watched only after 50 ms, and hears of it within 150 ms.
//!
//! # Options
//!
//! `etcd://[user:password@]host[:2379][,host..][?option=value&..]`, or the fields of
//! [`EtcdConfig`], which have the same names.
//!
//! | option | meaning | default |
//! |---|---|---|
//! | `ttl` | the TTL of a lock whose builder names none, in whole seconds | `15s` |
//! | `prefix` | what all keys start with, verbatim, as in `locks/` | nothing |
//! | `layout` | `escaped`: any name; `native`: names as foreign clients write them | `escaped` |
//!
//! # Store set-up and rights
//!
//! etcd 3.4 and newer (tested on 3.4.23). Four of its faults concern locks:
//!
//! - Up to 3.4.30 and 3.5.12 a leader that stalled may revoke living leases after it stepped down,
//!   and confirm keep-alives that the new leader never saw (etcd#15247). Take 3.4.31, 3.5.13 or
//!   newer.
//! - Up to 3.4.37, 3.5.22 and 3.6.4 a keep-alive may be confirmed although the lease has just been
//!   revoked (etcd pull request 20616). The watch of the key tells.
//! - Up to 3.4.31 and 3.5.13 the revision may go *back* after a crash during a compaction
//!   (etcd#17780): fencing tokens then repeat. Take 3.4.32, 3.5.14 or newer.
//! - 3.4 measures leases by the leader's *wall clock*. Set back, it keeps a dead holder's lock for
//!   so much longer (a release still works at once); set forward, it ends leases early, which
//!   holders are told by the watch. 3.5 and newer do not.
//!
//! The server's own Lock RPC is not used: 3.4 grants it to waiters whose lease has expired
//! (etcd#11456).
//!
//! A login must be allowed to read and write everything that starts with `prefix`. For locks alone
//! everything that starts with `<prefix><name>/` and with `<prefix>#` is enough.
//!
//! # Implementation
//!
//! ## Keys (layout version 1)
//!
//! | key | value | lease |
//! |---|---|---|
//! | `<prefix><name>/<lease id, hex>.<slot, hex><kind>` | the note: JSON `{"holder", "since", "attempt"}`, and `"floor"` if the token floor was raised | the session's |
//! | .. of a candidate of an election, whose `<kind>` is `.v` | the value that it proclaims, raw | the session's |
//! | `<prefix><name>#<lease id, hex>.<slot, hex>.v` | the candidate's note | the session's |
//! | `<exclusive entry's key>.s`: it is shared now | nothing | the session's |
//! | `<exclusive entry's key>.x`: for a moment, while it becomes shared | nothing | the session's |
//! | `<prefix>#<lease id, hex>`: the session's epoch, once an acquire was not answered | nothing | the session's |
//! | `<prefix>#floor`: the token floor, once it was raised | the number, decimal | none |
//!
//! `<kind>` is nothing for an exclusive entry, `.r` for a shared one, and `.p<weight>.<limit>` for
//! permits. A name's queue is the entries under `<prefix><name>/`, in order of their create
//! revision. The first one holds the lock, and those right behind it that may be beside it (the
//! [queue rule](lock_core::queue)). The create revision is the fencing token; if the [token
//! floor](lock_core::TokenFloor) was raised, that is added. Keys of any other form, like Go's
//! `<name>/<lease id>`, are exclusive entries, and foreign clients take all of ours for such: a
//! reader of ours keeps them out, and is kept out. Names are percent-encoded, so that no queue
//! stands in another; `layout=native` takes them verbatim and refuses `/`, which goes into
//! `prefix`. A candidate's note and an epoch stand in no queue, since nothing after their prefix is
//! a `/`. A login must be allowed to read and write everything that starts with the prefix; for
//! locks alone everything that starts with `<prefix><name>/` and with `<prefix>#` is enough.
//!
//! A *downgrade* leaves the entry where it stands, also for foreign clients, and puts a mark beside
//! it, which counts if it was written after the entry. Watches report deletions only, so the `.x`
//! key comes and goes to tell waiting readers that they may list the queue. A *try_upgrade* puts a
//! new entry in the place of the old one, in one transaction that does nothing if there is any
//! other.
//!
//! One etcd lease for each TTL in use is the client's *session*: one keep-alive renews all locks. A
//! slot is the lowest number that no other attempt of the client is using. Keys are used again
//! because etcd keeps deleted ones in its index until the history is compacted, and looks at all of
//! them whenever the queue is read: 100,000 of them make an acquire take 18 ms instead of 0.7
//! (3.4.23). So no key says whose it is. What releases, converts, publishes or cleans up asks for
//! the entry's revision, and a request that acquires asks for the session's *epoch*, the
//! modification revision of the epoch's key; there is none at first, and nothing to pay. After an
//! acquire that was not answered the key is written before anything else is sent for that attempt,
//! and the old request does nothing from then on, however late it arrives.
//!
//! ## Requests
//!
//! | | requests |
//! |---|---|
//! | acquire + release, of every kind | 2 transactions, also for a lock that others hold; the first one compares the epoch, too, and reads its key if it does nothing |
//! | try | 1 transaction; one more to enter beside others |
//! | each release, for a client with waiters on that name | 1 watch event, 0 requests, however many may enter |
//! | hand-over between two waiters of one client | nothing: the second need not wait for the first one's release |
//! | an acquire that was not answered | 1 transaction, which writes the epoch, for all of the session that were not; the acquire once more, and so whatever acquires of the session were under way beside it |
//! | .. and was given up | that transaction, 1 read of its key, and 1 transaction for up to 50 of them |
//! | downgrade | 1 transaction, 1 in the background, and 1 list for each client that watches the name |
//! | try_upgrade | 1 transaction, and a new watch if the lock is held for more than 50 ms after it |
//! | acquire of a set of up to 128 names | 1 transaction if all are free; otherwise one for each name as well |
//! | inspect; revoke | 1 range for each 500 entries, 1 question for each lease that holds it, and 1 local read of the history for each of up to 16 holders; such a range + 1 transaction |
//! | the loss of a session, with however many locks | at most 1 revocation; if etcd denies that, 1 transaction for each 50 entries, and more for those that it denies |
//! | names | 1 range for each 2,000 keys that start with `prefix` and the escaped start of the names |
//! | campaign + resign | 2 transactions |
//! | proclaim | 1 transaction |
//! | observing | 1 watch on the one stream of all observers; 1 read at first, or 2; 1 local look at one key every 10 s, because watches have lost events |
//! | .. for each client with observers | 1 local request every 5 s, to notice a connection that broke without a sound |
//! | each proclamation, and each candidate that comes or goes, for each observer | 1 watch event |
//! | each new leader, for each observer | 1 read of its note |
//! | first wait on a name in a while | 1 watch (a message on the one stream), and up to 4 local reads while it settles |
//! | waiting | 1 local read per TTL and name, because watches have lost events (etcd#18089) |
//! | a wait in vain | 1 local read of one key and 1 of the history, for all waits of a name that end together; for a try etcd reads the whole queue, and sends its beginning |
//! | a hold of more than 50 ms | 1 watch of its name, and 1 local list a minute for up to 64 such names, or for each if one of them is denied or etcd is older than 3.4.23 or 3.5.7 (it crashes at such lists) |
//! | a watch that etcd refuses | 1 read; 1 login and 1 stream for all of them if it is allowed |
//! | connecting | 4 requests in one round, and 1 beside what comes next |
//! | the first use of a TTL | 1 request, however many ask for it at once |
//! | idle | 1 keep-alive per TTL/3 and session, however many locks |
//!
//! Many clients that wait on one name get one event each per release.
//!
//! A client has at most 64 requests under way, 32 of them acquires, 8 tries and 8 looks. A burst
//! beyond that waits in the process, in order, and may be given up there. For etcd confirms a
//! keep-alive only after it has applied all that was committed before: without the bound a burst of
//! thousands of acquires delays the keep-alives of the same client past the TTL. Releases and
//! revokes never wait for acquires; keep-alives and watches wait for nothing.

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

/// The client crate, so that a benchmark can compare with it in the same version.
pub use etcd_client as client;

pub use lock_core::Layout;

pub use crate::{config::EtcdConfig, lease::EtcdLease, lock::EtcdLock};
