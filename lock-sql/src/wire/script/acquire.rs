//! Entering a queue, or several at once, with the next token of each: the fencing token of an
//! attempt is the next number of its name's counter.

use lock_core::{Kind, LockName, Request, Wait, Wish};
use uuid::Uuid;

use super::{ENTER, Script};
use crate::layout::{
    dialect::Dialect,
    row::{self, PERMIT, SHARED},
};

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

    /// Enters all of these queues if all leave room, and returns the entries: all of them or none.
    /// Sent again, it finds the entries of the first time.
    pub(crate) fn acquire_all(self, wishes: &[Wish], client: Uuid) -> String {
        let requests = || wishes.iter().map(|(request, _)| request);
        let names = self.names(requests().map(|request| &request.name));
        let ids = self.ids(wishes.iter().map(|(_, caller)| caller.id()));
        let shared = requests().filter(|request| request.kind == Kind::Shared);
        let shared = self.names(shared.map(|request| &request.name));
        // The set's own readers are there when it is sent again.
        let beside = match shared.as_str() {
            "" => String::new(),
            _ => format!(
                " AND NOT (kind = {SHARED} AND name IN ({shared}) AND attempt NOT IN ({ids}))"
            ),
        };
        let rows: Vec<_> = wishes.iter().map(|wish| self.wished(wish)).collect();
        let (client, rows) = (self.id(client), rows.join(" UNION ALL "));
        let (now, wall, nothing) = (self.0.now(), self.0.wall(), self.0.maybe_bytes(None));
        let enter = format!(
            "{ENTER} SELECT wished.name, counter.token, wished.attempt, {client}, wished.kind, 0, 0, wished.ttl, \
             {now} + wished.ttl, {wall}, wished.holder, {nothing}, 0, {wall} \
             FROM ({rows}) AS wished JOIN distlock_v1_slots AS counter ON counter.slot = wished.slot \
             WHERE NOT EXISTS (SELECT 1 FROM distlock_v1_entries WHERE name IN ({names}){beside});"
        );
        let take = self.next_tokens(requests().map(|request| &request.name)) + &self.bury(&names);
        self.0.transaction(&(take + &enter + &self.entries_of(&ids)))
    }

    fn wished(self, (request, caller): &Wish) -> String {
        let (name, id) = (self.name(&request.name), self.id(caller.id()));
        let slot = self.0.slot(request.name.as_str().as_bytes());
        let (ttl, holder) = (request.ttl.as_micros(), self.0.bytes(request.holder.as_bytes()));
        let (kind, ..) = row::written(request.kind);
        format!(
            "SELECT {name} AS name, {id} AS attempt, {slot} AS slot, {ttl} AS ttl, {holder} AS holder, \
             {kind} AS kind"
        )
    }

    /// Takes a token of the name's counter. Until the transaction ends, no other attempt enters a
    /// queue of the same counter. So the attempt with the greater token also sees the entries with
    /// smaller tokens. A counter that somebody has set back goes on above the name's entries.
    pub(super) fn next_token(self, name: &LockName) -> String {
        let slot = self.0.slot(name.as_str().as_bytes());
        let greatest = if self.0 == Dialect::Sqlite { "MAX" } else { "GREATEST" };
        let name = self.name(name);
        format!(
            "UPDATE distlock_v1_slots SET token = {greatest}(token, (SELECT COALESCE(MAX(token), 0) \
             FROM distlock_v1_entries WHERE name = {name})) + 1 WHERE slot = {slot};"
        )
    }

    /// Same as [`next_token`](Self::next_token) for each of these names. Names of one counter get
    /// the same token. The counters are locked in order, so that two sets do not wait for each
    /// other.
    fn next_tokens<'a>(self, names: impl Iterator<Item = &'a LockName>) -> String {
        let slots = self.slots(names);
        let count =
            format!("UPDATE distlock_v1_slots SET token = token + 1 WHERE slot IN ({slots})");
        match self.0 {
            Dialect::Sqlite => format!("{count};"),
            Dialect::MySql => format!("{count} ORDER BY slot;"),
            Dialect::Postgres => format!(
                "SELECT slot FROM distlock_v1_slots WHERE slot IN ({slots}) ORDER BY slot \
                 FOR NO KEY UPDATE; {count};"
            ),
        }
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
