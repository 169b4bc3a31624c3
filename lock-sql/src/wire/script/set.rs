//! Several locks by one transaction.

use lock_core::{Kind, LockName, Wish};
use uuid::Uuid;

use super::{ENTER, Script};
use crate::layout::{
    dialect::Dialect,
    row::{self, SHARED},
};

impl Script {
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
