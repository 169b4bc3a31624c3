//! The statements: one message and one transaction per verb.
//!
//! They have no parameters, since several statements in one message cannot have any: what is put in
//! is a number or hexadecimal, and nothing else.

mod floor;
mod granted;
mod hand_over;
mod push;
mod set;
mod values;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use lock_core::{Kind, LockName, Request, Wait};
use uuid::Uuid;

pub(crate) use self::hand_over::HandOver;
#[cfg(feature = "postgres")]
pub(crate) use self::push::OBSERVERS;
use self::{
    push::Leaving,
    values::{KEPT, leads_among},
};
use crate::{
    dialect::Dialect,
    entry::Entry,
    grants::Grants,
    row::{self, EXCLUSIVE, PERMIT, SHARED},
};

/// How many entries of a queue are read to find out who holds the lock.
pub(crate) const HEAD: usize = 256;

/// A new entry.
#[derive(Debug)]
pub(crate) struct Wish<'a> {
    pub(crate) name: &'a LockName,
    pub(crate) attempt: Uuid,
    pub(crate) client: Uuid,
    pub(crate) kind: Kind,
    pub(crate) ttl: Duration,
    pub(crate) wait: Wait,
    pub(crate) holder: &'a str,
    pub(crate) value: Option<&'a [u8]>,
}

impl<'a> Wish<'a> {
    pub(crate) fn new(client: Uuid, entry: &'a Entry, request: &'a Request) -> Self {
        Self {
            name: &entry.name,
            attempt: entry.attempt,
            client,
            kind: request.kind,
            ttl: entry.ttl,
            wait: request.wait,
            holder: &request.holder,
            value: request.value.as_deref(),
        }
    }
}

/// Writes statements in one dialect, for tables with or without the column for grants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Script(pub(crate) Dialect, pub(crate) Grants);

impl Script {
    fn name(self, name: &LockName) -> String {
        self.0.bytes(name.as_str().as_bytes())
    }

    fn names<'a>(self, names: impl IntoIterator<Item = &'a LockName>) -> String {
        let names: Vec<_> = names.into_iter().map(|name| self.name(name)).collect();
        names.join(", ")
    }

    fn id(self, id: Uuid) -> String {
        self.0.bytes(id.as_bytes())
    }

    fn ids(self, ids: impl IntoIterator<Item = Uuid>) -> String {
        let ids: Vec<_> = ids.into_iter().map(|id| self.id(id)).collect();
        ids.join(", ")
    }

    /// Takes a token of the name's counter. Until the transaction ends nobody else enters a queue
    /// of the same counter, so whoever has the greater token also sees the entries with smaller
    /// ones.
    fn next_token(self, name: &LockName) -> String {
        let slot = self.0.slot(name.as_str().as_bytes());
        format!("UPDATE distlock_v1_slots SET token = token + 1 WHERE slot = {slot};")
    }

    /// Removes what has expired. An entry counts until it is removed, and it is never renewed after
    /// its expiry: so no holder comes back after the next one was let in.
    fn bury(self, names: &str) -> String {
        let now = self.0.now();
        format!("DELETE FROM distlock_v1_entries WHERE name IN ({names}) AND expires <= {now};")
    }

    /// The columns of an entry, with all that it says or without.
    fn columns(self, full: bool) -> String {
        let said = if full { "holder, value" } else { "NULL AS holder, NULL AS value" };
        let (now, granted) = (self.0.now(), self.granted());
        format!(
            "name, token, attempt, kind, weight, lim, expires - {now} AS alive, {said}, version, \
             since, {granted} AS granted"
        )
    }

    /// The whole queue of each name.
    fn queues(self, names: &str, full: bool) -> String {
        let columns = self.columns(full);
        format!(
            "SELECT {columns} FROM distlock_v1_entries WHERE name IN ({names}) ORDER BY name, token;"
        )
    }

    /// Answers which of these attempts have an entry.
    #[cfg(feature = "postgres")]
    pub(crate) fn held(self, attempts: impl IntoIterator<Item = Uuid>) -> String {
        self.own(&self.ids(attempts))
    }

    /// The entries of these attempts.
    fn own(self, ids: &str) -> String {
        let columns = self.columns(true);
        format!("SELECT {columns} FROM distlock_v1_entries WHERE attempt IN ({ids});")
    }

    /// Enters the queue, unless the attempt is in it already, and answers it. Not in it afterwards
    /// is whoever does not want to wait and would have to, and whoever counts with other permits.
    pub(crate) fn acquire(self, wish: &Wish<'_>) -> String {
        let (name, id) = (self.name(wish.name), self.id(wish.attempt));
        let slot = self.0.slot(wish.name.as_str().as_bytes());
        let (kind, weight, limit) = row::written(wish.kind);
        let (now, wall, ttl) = (self.0.now(), self.0.wall(), wish.ttl.as_micros());
        let client = self.id(wish.client);
        let holder = self.0.bytes(wish.holder.as_bytes());
        let value = self.0.maybe_bytes(wish.value);
        let admitted = admission(wish, &name);
        let (column, granted) = self.granted_at_once(wish, &name);
        let enter = format!(
            "INSERT INTO distlock_v1_entries (name, token, attempt, client, kind, weight, lim, ttl, \
             expires, since, holder, value, version{column}) \
             SELECT {name}, token, {id}, {client}, {kind}, {weight}, {limit}, {ttl}, {now} + {ttl}, \
             {wall}, {holder}, {value}, 0{granted} FROM distlock_v1_slots WHERE slot = {slot} \
             AND NOT EXISTS (SELECT 1 FROM distlock_v1_entries WHERE attempt = {id}) AND {admitted};"
        );
        let take = self.next_token(wish.name) + &self.bury(&name) + &enter;
        let tell = if wish.value.is_some() { self.tell_observers(&name) } else { String::new() };
        self.0.transaction(&(take + &tell + &self.queues(&name, false)))
    }

    /// Renews what is still alive, and answers it.
    pub(crate) fn renew(self, attempts: impl IntoIterator<Item = Uuid>) -> String {
        let (ids, now) = (self.ids(attempts), self.0.now());
        let columns = self.columns(false);
        format!(
            "UPDATE distlock_v1_entries SET expires = {now} + ttl \
             WHERE attempt IN ({ids}) AND expires > {now}; \
             SELECT {columns} FROM distlock_v1_entries WHERE attempt IN ({ids}) AND expires > {now};"
        )
    }

    /// Answers the queues of these names; with `bury`, after whoever is dead has been removed: not
    /// while somebody leaves, who would take the dead for one that stays, and tell nobody.
    pub(crate) fn look(self, names: &[LockName], bury: bool) -> String {
        let all: Vec<_> = names.iter().collect();
        let names = self.names(names);
        let dead = match bury {
            false => String::new(),
            true => self.after_arrivals_if_pushed(&all) + &self.bury(&names),
        };
        dead + &self.queues(&names, false)
    }

    /// Answers a name's queue, with all that its entries say.
    pub(crate) fn inspect(self, name: &LockName) -> String {
        self.queues(&self.name(name), true)
    }

    /// Returns the first entries of a queue, with the holder of the very first, and then the
    /// entries of these attempts with their place among all, as a token. The version tells the two
    /// apart.
    ///
    /// The database goes through the queue once, up to the last of the attempts: it has no index
    /// that counts.
    pub(crate) fn diagnose(self, name: &LockName, attempts: &[Uuid]) -> String {
        let (name, ids, now) = (self.name(name), self.ids(attempts.iter().copied()), self.0.now());
        let queue = format!("FROM distlock_v1_entries WHERE name = {name}");
        let (nothing, never) = (self.0.maybe_bytes(None), self.0.no_number());
        let granted = self.granted();
        format!(
            "SELECT name, token, attempt, kind, weight, lim, expires - {now} AS alive, \
             CASE WHEN token = (SELECT MIN(token) {queue}) THEN holder END AS holder, \
             {nothing} AS value, 0 * token AS version, since, {granted} AS granted {queue} ORDER BY token LIMIT {HEAD}; \
             SELECT * FROM (SELECT name, ROW_NUMBER() OVER (ORDER BY entry.token) AS token, attempt, kind, \
             weight, lim, 0 * token AS alive, {nothing} AS holder, {nothing} AS value, \
             1 + 0 * token AS version, since, {never} AS granted FROM distlock_v1_entries AS entry WHERE name = {name} AND token <= \
             (SELECT MAX(token) {queue} AND attempt IN ({ids}))) AS line WHERE attempt IN ({ids});"
        )
    }

    /// Removes entries, and wakes whoever is next. `doubtful`: a request to enter that was not
    /// answered may still be under way.
    pub(crate) fn leave(self, entries: &[Arc<Entry>], doubtful: bool, client: Uuid) -> String {
        let mut queues = BTreeMap::<_, Vec<_>>::new();
        for entry in entries {
            queues.entry(&entry.name).or_default().push(entry);
        }
        let names: Vec<_> = queues.keys().copied().collect();
        let after = match doubtful {
            true => self.after_arrivals(&names),
            false => self.after_arrivals_if_pushed(&names),
        };
        let ids = self.ids(entries.iter().map(|entry| entry.attempt));
        let names = self.names(names);
        let one_by_one = |(name, entries): (&&LockName, &Vec<&Arc<Entry>>)| {
            let ids = self.ids(entries.iter().map(|entry| entry.attempt));
            self.wake(&self.name(name), &ids, Leaving::of(entries.iter().copied()), client)
        };
        let wake = match Leaving::of(entries.iter()) {
            Leaving::Writers if queues.len() > 1 => self.wake_after_writers(&names, &ids, client),
            _ => queues.iter().map(one_by_one).collect(),
        };
        let (remove, leads) = (remove(&ids, &names), entries.iter().any(|entry| entry.leads));
        if !leads && after.is_empty() {
            return remove;
        }
        let (keep, tell) = match leads {
            true => (self.keep(&leads_among(&ids)), self.tell_observers(&names)),
            false => (String::new(), String::new()),
        };
        self.0.transaction(&(after + &keep + &wake + &remove + &tell))
    }

    /// Makes an exclusive entry a shared one, and answers it.
    ///
    /// Only the grant with this token: an upgrade makes a new one, so a request that comes too late
    /// changes nothing.
    pub(crate) fn downgrade(
        self,
        name: &LockName,
        attempt: Uuid,
        token: u64,
        client: Uuid,
    ) -> String {
        let id = self.id(attempt);
        let change = format!(
            "UPDATE distlock_v1_entries SET kind = {SHARED} \
             WHERE attempt = {id} AND token = {token} AND kind = {EXCLUSIVE};"
        );
        self.after_arrivals_if_pushed(&[name])
            + &change
            + &self.wake_readers(&self.name(name), client)
            + &self.own(&id)
    }

    /// Makes a shared entry an exclusive one with a new token if it is the only one, and answers
    /// it.
    ///
    /// Only the grant with this token, as [`downgrade`](Self::downgrade).
    pub(crate) fn upgrade(self, name: &LockName, attempt: Uuid, token: u64) -> String {
        let (id, bytes) = (self.id(attempt), self.name(name));
        let slot = self.0.slot(name.as_str().as_bytes());
        let wall = self.0.wall();
        let granted = match self.1 {
            Grants::Dated => format!(", granted = {wall}"),
            Grants::Undated => String::new(),
        };
        // MySQL reads the table that it changes only by way of a table that it makes for the LIMIT.
        let alone = format!(
            "(SELECT COUNT(*) FROM (SELECT attempt FROM distlock_v1_entries WHERE name = {bytes} \
             LIMIT 2) AS present) = 1"
        );
        let change = format!(
            "UPDATE distlock_v1_entries SET kind = {EXCLUSIVE}, since = {wall}{granted}, \
             token = (SELECT token FROM distlock_v1_slots WHERE slot = {slot}) \
             WHERE attempt = {id} AND token = {token} AND kind = {SHARED} AND {alone};"
        );
        let statements = self.next_token(name) + &self.bury(&bytes) + &change + &self.own(&id);
        self.0.transaction(&statements)
    }

    /// Writes nothing, but is refused where a write would be.
    pub(crate) fn ping(self) -> String {
        self.0.transaction("UPDATE distlock_v1_entries SET version = version WHERE 1 = 0;")
    }

    /// Removes an entry of whatever client, and answers it.
    pub(crate) fn revoke(self, name: &LockName, attempt: Uuid, client: Uuid) -> String {
        let (names, id) = (self.name(name), self.id(attempt));
        let keep = self.keep(&leads_among(&id));
        let statements = self.after_arrivals(&[name])
            + &self.own(&id)
            + &self.tell_victim(&names, attempt)
            + &keep
            + &self.wake(&names, &id, Leaving::Anybody, client)
            + &remove(&id, &names)
            + &self.tell_observers(&names);
        self.0.transaction(&statements)
    }

    /// Answers one entry of each name in use that starts with a prefix.
    pub(crate) fn used(self, prefix: &str) -> String {
        // No name contains the byte 0xFF.
        let from = self.0.bytes(prefix.as_bytes());
        let to = self.0.bytes(&[prefix.as_bytes(), b"\xff"].concat());
        let now = self.0.now();
        let columns = self.columns(false);
        format!(
            "SELECT {columns} FROM distlock_v1_entries AS used \
             WHERE name >= {from} AND name < {to} AND expires > {now} \
             AND NOT EXISTS (SELECT 1 FROM distlock_v1_entries AS earlier WHERE earlier.name = used.name \
             AND earlier.token < used.token AND earlier.expires > {now}) ORDER BY name;"
        )
    }

    /// Answers, as a token, a number that changes whenever another connection changes anything at
    /// all, and when this is another connection than before. Only SQLite has one.
    pub(crate) fn version(self) -> String {
        format!("{} FROM pragma_data_version, temp.connection;", self.number("id + data_version"))
    }

    /// Answers, as a token, what a commit outlives: 2 is a crash of the machine, 1 one of the
    /// server, 0 neither.
    pub(crate) fn durability(self) -> String {
        let outlives = match self.0 {
            // Of the machine it need not: the boot clock starts anew, and tokens jump.
            Dialect::Sqlite => "2",
            Dialect::MySql => {
                // With a binary log, InnoDB takes its word for what was committed.
                "CASE WHEN @@log_bin = 1 AND @@sync_binlog <> 1 THEN 1 \
                 WHEN @@innodb_flush_log_at_trx_commit IN (1, 3) THEN 2 \
                 WHEN @@innodb_flush_log_at_trx_commit = 2 THEN 1 ELSE 0 END"
            }
            Dialect::Postgres => "CASE current_setting('fsync') WHEN 'on' THEN 2 ELSE 1 END",
        };
        format!("{};", self.number(outlives))
    }

    /// Answers, as a token, how many counters for tokens there are.
    pub(crate) fn counters(self) -> String {
        format!("{};", self.number("(SELECT COUNT(*) FROM distlock_v1_slots WHERE slot >= 0)"))
    }

    /// Answers a number in the place of a token.
    fn number(self, number: &str) -> String {
        let (none, nothing) = (self.0.bytes(b""), self.0.maybe_bytes(None));
        let integer = |number: &str| match self.0 {
            Dialect::Postgres => format!("({number})::bigint"),
            Dialect::Sqlite | Dialect::MySql => number.to_owned(),
        };
        let (number, zero, never) = (integer(number), integer("0"), self.0.no_number());
        format!(
            "SELECT {none} AS name, {number} AS token, {none} AS attempt, {zero} AS kind, \
             {zero} AS weight, {zero} AS lim, {zero} AS alive, {nothing} AS holder, \
             {nothing} AS value, {zero} AS version, {zero} AS since, {never} AS granted"
        )
    }

    /// Removes entries and values that are long dead, of names that nobody asks for any more.
    pub(crate) fn sweep(self) -> String {
        let (now, kept) = (self.0.now(), KEPT.as_micros());
        format!(
            "DELETE FROM distlock_v1_entries WHERE expires < {now} - {kept}; \
             DELETE FROM distlock_v1_values WHERE moment < {now} - {kept};"
        )
    }
}

/// Removes entries of these names.
fn remove(ids: &str, names: &str) -> String {
    format!("DELETE FROM distlock_v1_entries WHERE attempt IN ({ids}) AND name IN ({names});")
}

/// The queue rule as a condition, for whoever must not enter if it does not hold.
fn admission(wish: &Wish<'_>, name: &str) -> String {
    match (wish.wait, wish.kind) {
        (Wait::Try, kind) => room(kind, name),
        // Only the first one sets the number: see `queue::other_limit`.
        (_, Kind::Permit { limit, .. }) => format!(
            "COALESCE((SELECT lim FROM distlock_v1_entries WHERE name = {name} AND kind = {PERMIT} \
             ORDER BY token LIMIT 1), {limit}) = {limit}"
        ),
        _ => "1 = 1".to_owned(),
    }
}

/// The condition that everybody in a queue leaves room for one more.
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
