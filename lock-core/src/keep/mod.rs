//! Parts that the drivers of this workspace share, and for these drivers alone: they change without
//! notice. Nothing here depends on a store: specific parts come in as an argument or by a small
//! trait.
//!
//! | module | what it keeps |
//! |---|---|
//! | [`attempt`] | one attempt from its first request to its end, as one state |
//! | [`attempts`] | all attempts of a client, and when each is due for renewal |
//! | [`renewal`] | how often a driver renews within a TTL |
//! | [`due`] | a task that works when something is due |
//! | [`wait`] | the wait for a grant, and the check before it is given out |
//! | [`cancel`] | waits that end when the caller of an attempt leaves |
//! | [`grant`] | from an attempt to its lease |
//! | [`lease`] | the state of a lease |
//! | [`departures`] | removing what attempts leave behind, several at a time |
//! | [`pool`] | sessions of the store, one for each TTL |
//! | [`opening`] | the result of opening a session, for all callers that wait for it |
//! | [`leftovers`] | entries that attempts have left in a session, until its janitor has removed them |
//! | [`observe`] | changes of the leader, sent to one observer |
//! | [`backoff`] | pauses that grow |
//! | [`marks`] | marks of work that is done, as text |
//! | [`ticket`] | tickets whose place a driver cannot read |
//! | [`tls`] | TLS for drivers that open their own sockets, and why it failed |
//! | [`one_host`] | the address in a URL of a store with one server |
//! | [`errors`] | constructors for the errors of drivers |
//! | [`limits`] | times and counts that are the same on every store |
//! | [`share`] | values that are shared by their names |
//! | [`setters!`](crate::setters) | setters of a driver's configuration |
//! | [`poison`] | mutexes that cannot be poisoned |
//!
//! *Send again until it is answered or too late* stands in each driver, since they share the pause
//! alone ([`backoff`]). etcd sends to another member, and ends an epoch when it is in doubt; Redis
//! keeps a place among its other requests, follows redirects and loads scripts; SQL waits for a
//! connection, and writes the script anew; ZooKeeper has no deadline: its session ends the request.

pub mod attempt;
pub mod attempts;
pub mod backoff;
pub mod cancel;
pub mod departures;
pub mod due;
pub mod errors;
pub mod grant;
pub mod lease;
pub mod leftovers;
pub mod limits;
pub mod marks;
pub mod observe;
pub mod one_host;
pub mod opening;
pub mod poison;
pub mod pool;
pub mod renewal;
mod setters;
pub mod share;
pub mod ticket;
#[cfg(feature = "net")]
pub mod tls;
pub mod wait;
