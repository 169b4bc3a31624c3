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
//! | connections | one of its own, to one member at a time | the client's; one stream, one more for each TTL in use, and the requests on it |
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
//! the locks leaves the client as it is. TLS comes with the feature `tls`, with ring.
//!
//! # Guarantees
//!
//! First come, first served; a waiter is woken by a push. Tokens always rise. A held lock survives
//! a restart of a member, and the loss of a member where three vote. The page `docs/stores/etcd.md`
//! of the repository has the promises, limits and costs in full. For programs that call the driver:
//!
//! - A waiter fails at once when its session or its entry is gone; far back in a queue it hears of
//!   its entry within 8 s. It is never silently queued again.
//! - A holder learns of a lost lock from its own deadline, from the answer to a keep-alive, and
//!   from the watch of its key: at once in a hold of more than 50 ms, within 150 ms in a younger
//!   one. If an operator, or a leader of etcd that stalled, revokes a living lease, the next waiter
//!   gets the lock before that; the fencing token covers it.
//! - A connection that was dropped without a word is noticed within 10 s, whatever the TTL.
//! - While etcd is out of reach, each caller fails after its own TTL, and a caller that leaves
//!   returns at once.
//! - A request whose answer is lost is sent again, or its entry is removed. After that it does
//!   nothing, however late it arrives. A refused upgrade does not happen later, and a proclaimed
//!   value is never replaced by an older one.
//! - An error says that nothing was done only if etcd says so.
//! - If the store goes back to an earlier state, all sessions of the client end as soon as it hears
//!   of it: holders lose their locks for [`LossReason::Restored`](lock_core::LossReason::Restored),
//!   waiters end with `PlaceLost`, observers read anew.
//! - An observer receives the present leader, and then the newest value: never an older one after a
//!   newer one, and perhaps not those in between.
//! - Closing tries for 3 s. Nothing is left under way 2 s later, also in an outage.
//!
//! # Options
//!
//! `etcd://[user[:password]@]host[:2379][,host..][?option=value&..]`, or the fields of
//! [`EtcdConfig`], which have the same names. `docs/stores/etcd.md` has the table.
//! [`Tls`](lock_core::Tls), [`Timeouts`](lock_core::Timeouts), [`User`](lock_core::User) and
//! [`Secret`](lock_core::Secret) are those of all drivers.
//!
//! # Store set-up and rights
//!
//! etcd 3.4 and newer; take 3.5.14 or newer. A login must be allowed to read and write everything
//! that starts with `prefix`; for locks alone everything that starts with `<prefix><name>/` and
//! with `<prefix>#`. `docs/stores/etcd.md` lists the faults of etcd's versions, each of which is
//! one of [`cautions`](lock_core::Guarantees::cautions).
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
//! | `<prefix>#session<lease id, hex>`: the session's key | nothing | the session's |
//! | `<prefix>#floor`: the token floor, once it was raised | the number, decimal | none |
//! | `<prefix>#done<name>#`: the mark of work that is done once per period | token, when it was written, when it ends (ms since 1970), host | none |
//!
//! `<kind>` is nothing for an exclusive entry, `.r` for a shared one, and `.p<weight>.<limit>` for
//! permits. A name's queue is the entries under `<prefix><name>/`, in order of their create
//! revision. The first one holds the lock, and so do the next ones that may be beside it (the
//! [queue rule](lock_core::queue)). The fencing token is the create revision plus the [token
//! floor](lock_core::TokenFloor), if that was raised. Keys of any other form, like Go's
//! `<name>/<lease id>`, are exclusive entries, and to foreign clients all our entries are. Names
//! are percent-encoded, so that no queue stands in another. `layout=native` takes names verbatim
//! and refuses `/`. A candidate's note, a mark and a session's key stand in no queue, since nothing
//! after their prefix is a `/`. In the native layout no name begins with `#session`. A name that is, with
//! a `/`, the prefix of another client has all keys of that client in its queue: use no such name.
//!
//! ## How it works
//!
//! One etcd lease for each TTL in use is the client's *session*: one keep-alive renews all its
//! locks. A slot is the lowest number that no other attempt of the client is using: keys are used
//! again, so a key does not identify its attempt. A request that releases, converts, publishes or
//! cleans up compares the entry's revision, and one that acquires or adopts compares the session's
//! *epoch*, the modification revision of its key (`session/key.rs`), so that none takes effect
//! late. A raise of the token floor deletes the keys of all sessions: attempts then enter in new
//! sessions, which have read the new floor.
//!
//! An uncontended acquire is one transaction, and so is a release, also between others. A waiter
//! watches the queue, and a release sends it one event; it asks nothing. An exclusive attempt
//! behind more than 16 entries sees the last 16 alone. It first watches one of these, and the queue
//! when that one is gone (`queue/far.rs`). Watches have lost events (etcd#18089), so waiters and
//! holders also read now and then.
//!
//! A *downgrade* leaves the entry in its place and puts a mark beside it. The mark counts if it was
//! written after the entry. Watches report deletions only, so the `.x` key comes and goes to tell
//! waiting readers that they may list the queue. A *try_upgrade* replaces the old entry with a new
//! one, in one transaction that does nothing if there is any other entry.
//!
//! A removal that etcd refuses because a right was taken away is tried again every 1 to 30 s, and
//! with each new login at once. No attempt begins in that session any more, and the entry goes with
//! its last grant.

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

/// The client crate, so that a benchmark can compare with it in the same version.
pub use etcd_client as client;

pub use lock_core::Layout;

pub use crate::{config::EtcdConfig, lease::EtcdLease, lock::EtcdLock};
