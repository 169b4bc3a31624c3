//! A lock's holders and waiters, as data for programs. Fields have the names of the library.

use distlock::{Entry, Kind};
use serde::Serialize;
use uuid::Uuid;

use crate::print;

/// The queue of a lock.
#[derive(Serialize)]
pub(crate) struct Queue<'a> {
    pub(crate) name: &'a str,
    pub(crate) holders: Vec<Person>,
    pub(crate) waiters: Vec<Person>,
}

/// A holder or a waiter.
#[derive(Serialize)]
pub(crate) struct Person {
    /// The argument of `revoke`. Foreign clients have none.
    pub(crate) attempt: Option<Uuid>,
    /// The client's own description.
    pub(crate) description: Option<String>,
    /// The kind of its request.
    pub(crate) kind: Kind,
    /// When it joined the queue, RFC 3339.
    pub(crate) queued_at: Option<String>,
    /// When it was granted the lock, if the store can tell.
    pub(crate) granted_at: Option<String>,
    /// Time until its entry ends without a renewal.
    pub(crate) ttl_left_ms: Option<u128>,
    pub(crate) token: Option<u64>,
}

impl<'a> Queue<'a> {
    pub(crate) fn new(name: &'a str, entries: &[Entry]) -> Self {
        let of = |holds| entries.iter().filter(move |entry| entry.holds == holds);
        Self {
            name,
            holders: of(true).map(Person::from).collect(),
            waiters: of(false).map(Person::from).collect(),
        }
    }
}

impl From<&Entry> for Person {
    fn from(entry: &Entry) -> Self {
        Self {
            attempt: entry.attempt,
            description: entry.holder.description.clone(),
            kind: entry.kind,
            queued_at: entry.holder.queued_at.map(print::time),
            granted_at: entry.holder.granted_at.map(print::time),
            ttl_left_ms: entry.ttl_left.map(|left| left.as_millis()),
            token: entry.holder.token.map(|token| token.value()),
        }
    }
}

/// The client's description for people.
pub(crate) fn who(entry: &Entry) -> &str {
    entry.holder.description.as_deref().unwrap_or("a foreign client")
}

/// The time since the grant. If the store cannot tell: `queued .. ago`, the time since
/// the holder joined the queue.
pub(crate) fn held_for(entry: &Entry) -> String {
    match (entry.holder.granted_at, entry.holder.queued_at) {
        (Some(granted), _) => print::age(granted),
        (None, Some(queued)) => format!("queued {} ago", print::age(queued)),
        (None, None) => String::new(),
    }
}
