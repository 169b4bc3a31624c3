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
//! There are two ways, because a `client::Client` reveals neither its endpoints nor its options.
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
//! | a member that is down | is left at once, and tried last | stays in turn: with three members, a third of the requests fails first and is sent again |
//! | a silent connection | is replaced 2 s after a request, or after 10 s with a watch | is replaced only if the client has `with_keep_alive` |
//! | a member without a leader | ends its streams | only with `with_require_leader(true)`; otherwise its watches report nothing until there is a leader, and holders learn of a loss from their renewals |
//! | login | of the options; an expired login is renewed | the client's: `update_user` changes the locks' login, too; an expired login is renewed for both |
//! | TLS | of the options, `https://` endpoints | the client's |
//! | the client's request timeout | applies to each request, not to waits | the same |
//! | the client is dropped | nothing | nothing: the connection lasts as long as the locks |
//! | the runtime that connected the client ends | nothing, if it is not that of the locks | the connection is dead for good, and every call returns [`Error::Unavailable`](lock_core::Error::Unavailable): that runtime must live as long as the locks |
//! | all its endpoints are removed | nothing | an outage: locks are lost after their TTL |
//!
//! Both ways give the same guarantees: etcd's revisions decide, not which member answers. Closing
//! the locks leaves the client as it is. TLS is compiled in, with ring.
//!
//! # Guarantees
//!
//! First come, first served; a waiter is woken by a push. Tokens always rise: a token is a create
//! revision plus the token floor. A held lock survives a restart of a member, and the loss of a
//! member where three vote. A holder learns of its loss from etcd, and from its own deadline.
//!
//! - A waiter fails at once when its session or its entry is gone. It is never silently queued
//!   again.
//! - A holder learns of a lost lock from its own deadline, from the answer to a keep-alive, and
//!   from the watch of its key. The watch of a hold of more than 50 ms reports the loss as soon as
//!   etcd does; that of a younger hold within 150 ms.
//! - A connection that is silent for 7 s while it has a watch or keep-alives is asked by an HTTP/2
//!   ping, and replaced if that is not answered within 3 s. So waiters, holders and observers
//!   notice a connection that was dropped without a word, whatever the TTL.
//! - If etcd refuses a watch because the login has expired or the password was set anew, the watch
//!   begins again with a new login. What happened meanwhile is listed: one read for each name, and
//!   one login for all of them, at most one a second. If the login may not read the queue any more,
//!   its waiters end with `Denied`, and nothing else of the client is disturbed. Its holders keep
//!   the lock, and *do not learn* if it is deleted or taken away meanwhile (event `unwatched`). The
//!   watch is tried again every 5 s.
//! - If etcd refuses the password itself, and the password is in a file or a variable, waiters keep
//!   their places for a TTL from the first refusal on: the new password may be on its way there.
//! - Current versions of etcd deny a *keep-alive* if any key of the lease may not be written any
//!   more (3.4.42, 3.5.28, 3.6.9 and newer), and the newest (3.4.44, 3.5.30, 3.6.12) every put with
//!   that lease, too. A client's locks with the same TTL share a lease: if a login loses the right
//!   to one of the names, all of them end within a TTL. Locks with other TTLs do not.
//! - While etcd is out of reach, each caller fails after its own TTL, with a session and without. A
//!   caller that leaves returns at once. One request for a session is under way for all callers.
//!   Each client tries the endpoints in an order of its own; an endpoint that failed comes last.
//! - A request without an answer moves the client to another member, unless the member has answered
//!   a keep-alive or another request meanwhile: it is slow then. What else was under way there is
//!   sent again at once.
//! - A lock whose upgrade was not answered, and cannot be asked about, is not watched until another
//!   upgrade or the release settles it: its holder learns of a loss from the keep-alives alone.
//! - A request whose answer is lost is resolved: it is sent again, or its entry is removed. After
//!   that it does nothing, however late it arrives: it makes no entry, and neither removes nor
//!   changes a later one. A refused upgrade does not happen later.
//! - A removal that etcd refuses because a right was taken away is tried again after 1 s, and then
//!   every 2 to 30 s, and with each new login at once. Other grants of the session go on. No
//!   attempt begins in the session any more, and the entry goes with its last grant.
//!   An adoption that was not answered, and that cannot be undone, ends in the same way.
//! - etcd does not end a session if the login may not write one of its keys any more. Its other
//!   entries are then removed by key when the client closes or the session has expired. That key,
//!   and the entry of a request that arrives only then, end with the lease, at most a TTL later.
//! - If the store goes back to an earlier state (an older backup is restored, or confirmed writes
//!   are lost), all sessions of the client end as soon as it hears of it: holders lose their locks
//!   for [`LossReason::Restored`](lock_core::LossReason::Restored), waiters end with `PlaceLost`,
//!   observers read anew. An answer of the whole cluster with a revision below an earlier one shows
//!   it. A member by itself may lag: the client asks the cluster once if a member's revision is too
//!   low in the answer to a keep-alive or to a new watch.
//! - An error says that nothing was done only if etcd says so. An answer of more than 4 MB is not
//!   accepted. An acquire does not list the queue in pages, so one behind some 40,000 others is
//!   refused, and leaves nothing.
//! - A candidate's value of more than 512 KiB and a holder's description of more than 64 KiB are
//!   refused with `InvalidOption` before they are sent.
//! - An attempt that asks for permits with another limit than that of the first one in line is
//!   refused. It stands in the queue for a moment.
//! - An observer receives every change in order, also late if it does not look for a while. Only
//!   after an outage, or when changes that it has not taken were compacted or exceed 4 MB, it
//!   receives the current leader instead. The candidate that has etcd's next turn leads, perhaps before it knows.
//! - A proclaimed value is never replaced by an older one, however late a request arrives.
//! - **Fixed terms** end by the client's own delete. If the client crashes first, the lock is free
//!   when the session ends, one TTL after its last keep-alive.
//! - **TTLs** are whole seconds, from the shortest that etcd grants (1.5 elections: 2 s by default)
//!   to 1 h. Others are refused, not rounded. A client uses at most 64 different ones at a time.
//! - **Expiry** may come 1 s after the TTL, and one TTL later than that if the leader changed
//!   meanwhile: a new leader gives every lease its full TTL again.
//! - **Closing** tries for 3 s. Nothing is left under way 2 s later, also in an outage.
//! - `Guarantees` depend on what is deployed: `survives.failover` needs three voting members, and
//!   `overlaps` depends on the version. A login that may not know gets the lesser promise. A
//!   fault of the version that concerns locks, and a cluster of less than three, are `cautions`.
//!
//! ## A lease that is revoked early
//!
//! If an operator, or a former leader of etcd that stalled (see below), revokes a living lease or
//! deletes its keys, the next waiter gets the lock before the holder learns of it. The holder
//! learns from the watch of its key, usually within milliseconds: messages of the watches are read
//! before anything else is sent on that stream. Until then the fencing token rejects its writes.
//!
//! A grant may come *after* such a deletion: its answer was on the way, or it was handed over
//! within the client, which does not ask etcd. It is valid for a moment, and its loss is reported
//! like any other: the watch begins at the revision of the entry, and so reports what happened
//! before it began. A hold that never waited is watched only after 50 ms, and its loss is reported
//! within 150 ms.
//!
//! # Options
//!
//! `etcd://[user[:password]@]host[:2379][,host..][?option=value&..]`, or the fields of
//! [`EtcdConfig`], which have the same names. `docs/stores/etcd.md` has them with their ranges.
//!
//! | option | meaning | default |
//! |---|---|---|
//! | `user_file`, `user_env` | the file or the variable that has the user, in the place of `user@` ([`User`](lock_core::User)) | none |
//! | `password_file`, `password_env` | the file or the variable that has the password ([`Secret`](lock_core::Secret)) | none |
//! | `tls` | `verify` encrypts and checks the server's certificate ([`Tls`](lock_core::Tls)) | `off` |
//! | `ca` | the authorities to trust, a file in PEM | the system's |
//! | `cert`, `key` | the certificate of the client and its key, files in PEM | none |
//! | `server_name` | the name in the server's certificate | the host |
//! | `connect_timeout` | limit of connecting, over all members | `4s` |
//! | `request_timeout` | limit of one request ([`Timeouts`](lock_core::Timeouts)) | `2s` |
//! | `ttl` | the TTL of a lock if its builder sets none, in whole seconds | `15s` |
//! | `prefix` | start of all keys, verbatim, as in `locks/` | nothing |
//! | `layout` | `escaped`: any name; `native`: names as foreign clients write them | `escaped` |
//!
//! `etcds://` means `tls=verify`, and refuses `tls=off`.
//!
//! User and password from files or variables are read anew for each login. If etcd refuses a login,
//! the client tries what is there by then, and after that the login that worked last. So user and
//! password may be replaced in any order, also one after the other, and locks that are held stay.
//! Certificates are read anew for each connection.
//!
//! # Store set-up and rights
//!
//! etcd 3.4 and newer (tested on 3.4.23). Take 3.5.14 or newer. `docs/stores/etcd.md` lists the
//! faults of its versions that concern locks; each is one of `Guarantees::cautions`. The main ones:
//!
//! - Up to 3.4.30 and 3.5.12 a leader that stalled may revoke living leases after it stepped down,
//!   and confirm keep-alives that the new leader never saw (etcd#15247). Take 3.4.31, 3.5.13 or
//!   newer.
//! - Up to 3.4.31 and 3.5.13 the revision may go *back* after a crash during a compaction
//!   (etcd#17780): fencing tokens then repeat. Take 3.4.32, 3.5.14 or newer.
//! - 3.4 measures leases by the leader's *wall clock*. If the clock is set back, a dead holder's
//!   lock stays for that much longer (a release still works at once). If it is set forward, leases
//!   end early, and holders learn of it from the watch. 3.5 and newer do not.
//!
//! Up to 3.4.37, 3.5.22 and 3.6.4 a keep-alive may be confirmed although the lease has just been
//! revoked (etcd pull request 20616). This is no caution: the watch of the key reports the loss.
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
//! revision. The first one holds the lock, and so do the next ones that may be beside it (the
//! [queue rule](lock_core::queue)). The fencing token is the create revision plus the [token
//! floor](lock_core::TokenFloor), if that was raised. Keys of any other form, like Go's
//! `<name>/<lease id>`, are exclusive entries. To foreign clients all our entries are exclusive,
//! too: a reader of ours keeps them out, and is kept out. Names are percent-encoded, so that no
//! queue stands in another. `layout=native` takes names verbatim and refuses `/`: that part goes
//! into `prefix`. A candidate's note and an epoch stand in no queue, since nothing after their
//! prefix is a `/`.
//!
//! A *downgrade* leaves the entry in its place, also for foreign clients, and puts a mark beside
//! it. The mark counts if it was written after the entry. Watches report deletions only, so the
//! `.x` key comes and goes to tell waiting readers that they may list the queue. A *try_upgrade*
//! replaces the old entry with a new one, in one transaction that does nothing if there is any
//! other entry.
//!
//! One etcd lease for each TTL in use is the client's *session*: one keep-alive renews all locks. A
//! slot is the lowest number that no other attempt of the client is using. Keys are used again
//! because etcd keeps deleted ones in its index until the history is compacted, and looks at all of
//! them whenever the queue is read: 100,000 of them make an acquire take 18 ms instead of 0.7
//! (3.4.23). So a key does not identify its attempt. A request that releases, converts, publishes
//! or cleans up compares the entry's revision. A request that acquires compares the session's
//! *epoch*, the modification revision of the epoch's key. At first there is no such key, and it
//! costs nothing. After an acquire that was not answered the key is written before anything else is
//! sent for that attempt, and the old request does nothing from then on, however late it arrives.
//!
//! ## Requests
//!
//! | | requests |
//! |---|---|
//! | acquire + release, of every kind | 2 transactions, also for a lock that others hold; the first one also compares the epoch, and reads its key if it does nothing |
//! | try | 1 transaction; one more to enter beside others |
//! | each release, for a client with waiters on that name | 1 watch event, 0 requests, however many may enter |
//! | hand-over between two waiters of one client | nothing: the second need not wait for the first one's release |
//! | an acquire without an answer | 1 transaction, which writes the epoch, for all such acquires of the session; the acquire once more, and so all acquires of the session that were under way beside it |
//! | .. and was given up | that transaction, 1 read of its key, and 1 transaction for up to 50 of them |
//! | downgrade | 1 transaction, 1 in the background, and 1 list for each client that watches the name |
//! | try_upgrade | 1 transaction, and a new watch if the lock is held for more than 50 ms after it |
//! | acquire of a set of up to 126 names | 1 transaction if all are free; otherwise one for each name as well |
//! | inspect; revoke | 1 range for each 500 entries, 1 request for each lease that holds it, and 1 local read of the history for each of up to 16 holders; such a range + 1 transaction |
//! | the loss of a session, with any number of locks | at most 1 revocation; if etcd denies that, 1 transaction for each 50 entries, and more for the entries that it denies |
//! | names | 1 range for each 2,000 keys that start with `prefix` and the escaped start of the names |
//! | campaign + resign | 2 transactions |
//! | proclaim | 1 transaction |
//! | observing | 1 watch on the one stream of all observers; 1 read at first, or 2; 1 local look at one key every 10 s, because watches have lost events |
//! | each proclamation, and each candidate that comes or goes, for each observer | 1 watch event |
//! | each new leader, for each observer | 1 read of its note |
//! | first wait on a name in a while | 1 watch (a message on the one stream), and up to 4 local reads while it settles |
//! | waiting | 1 local read per TTL and name, because watches have lost events (etcd#18089) |
//! | a wait or try in vain | 1 local read of one key and 1 of the history, for all waits of a name that end together; for a try etcd reads the whole queue, and sends its beginning |
//! | a hold of more than 50 ms | 1 watch of its name, and 1 local list a minute for up to 64 such names, or for each if one of them is denied or etcd is older than 3.4.23 or 3.5.7 (it crashes at such lists) |
//! | a watch that etcd refuses | 1 read; 1 login and 1 stream for all of them if it is allowed |
//! | a member that lags behind what the client has seen | 1 read, when a watch begins or a keep-alive is answered |
//! | connecting | 4 requests in one round, and 1 beside what comes next |
//! | the first use of a TTL | 1 request for all callers that ask at once |
//! | idle | 1 keep-alive per TTL/3 and session, however many locks |
//!
//! Many clients that wait on one name get one event each per release.
//!
//! A client has at most 64 requests under way, 32 of them acquires, 8 tries and 8 looks. A burst
//! beyond that waits in the process, in order, and may be given up there. The bound is needed
//! because etcd confirms a keep-alive only after it has applied all that was committed before:
//! without it a burst of thousands of acquires delays the keep-alives of the same client past the
//! TTL. Releases and revokes never wait for acquires; keep-alives and watches wait for nothing.

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
