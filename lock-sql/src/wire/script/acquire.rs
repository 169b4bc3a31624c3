//! Entering a queue.

use lock_core::{Kind, Request, Wait};
use uuid::Uuid;

use super::{ENTER, Script};
use crate::layout::row::{self, PERMIT, SHARED};

impl Script {
    /// Enters the queue, unless the attempt is in it already, and returns the queue. The attempt
    /// does not enter if it would have to wait and must not, or if others count with another number
    /// of permits.
    pub(crate) fn acquire(self, request: &Request, attempt: Uuid, client: Uuid) -> String {
        let (name, id, client) = (self.name(&request.name), self.id(attempt), self.id(client));
        let slot = self.0.slot(request.name.as_str().as_bytes());
        let (kind, weight, limit) = row::written(request.kind);
        let (now, wall, ttl) = (self.0.now(), self.0.wall(), request.ttl.as_micros());
        let holder = self.0.bytes(request.holder.as_bytes());
        let value = self.0.maybe_bytes(request.value.as_deref());
        let admitted = admission(request, &name);
        let granted = granted_at_once(request, &name, &wall);
        let enter = format!(
            "{ENTER} SELECT {name}, token, {id}, {client}, {kind}, {weight}, {limit}, {ttl}, {now} + {ttl}, \
             {wall}, {holder}, {value}, 0, {granted} FROM distlock_v1_slots WHERE slot = {slot} \
             AND NOT EXISTS (SELECT 1 FROM distlock_v1_entries WHERE attempt = {id}) AND {admitted};"
        );
        let take = self.next_token(&request.name) + &self.bury(&name) + &enter;
        let tell = if request.value.is_some() { self.tell_observers(&name) } else { String::new() };
        self.0.transaction(&(take + &tell + &self.queues(&name, false)))
    }
}

/// When a new entry is granted: at this moment, unless it has to wait.
fn granted_at_once(request: &Request, name: &str, wall: &str) -> String {
    match request.wait {
        // It enters only if it is granted at once.
        Wait::Try => wall.to_owned(),
        _ => format!("CASE WHEN {} THEN {wall} END", room(request.kind, name)),
    }
}

/// The queue rule as a condition that must hold for the entry to be made.
fn admission(request: &Request, name: &str) -> String {
    match (request.wait, request.kind) {
        (Wait::Try, kind) => room(kind, name),
        // Only the first entry of permits sets the number: see `queue::other_limit`.
        (_, Kind::Permit { limit, .. }) => format!(
            "COALESCE((SELECT lim FROM distlock_v1_entries WHERE name = {name} AND kind = {PERMIT} \
             ORDER BY token LIMIT 1), {limit}) = {limit}"
        ),
        _ => "1 = 1".to_owned(),
    }
}

/// The condition that all entries in a queue leave room for one more.
fn room(kind: Kind, name: &str) -> String {
    let entries = format!("FROM distlock_v1_entries WHERE name = {name}");
    match kind {
        Kind::Shared => format!("NOT EXISTS (SELECT 1 {entries} AND kind <> {SHARED})"),
        Kind::Permit { weight, limit } => format!(
            "NOT EXISTS (SELECT 1 {entries} AND (kind <> {PERMIT} OR lim <> {limit})) \
             AND (SELECT COALESCE(SUM(weight), 0) {entries}) + {weight} <= {limit}"
        ),
        _ => format!("NOT EXISTS (SELECT 1 {entries})"),
    }
}
