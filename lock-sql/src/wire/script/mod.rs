//! The statements: one message and one transaction per operation.
//!
//! They have no parameters, since several statements in one message cannot have any. Only numbers
//! and hexadecimal are put into them, and `wire::values` finds these again where statements are
//! planned once. So a number may stand only where a `bigint` may, except after `LIMIT`.

mod acquire;
mod convert;
mod floor;
mod held;
mod mark;
mod read;
mod release;
mod renew;
mod wake;

use std::collections::BTreeSet;

use lock_core::LockName;
use uuid::Uuid;

pub(crate) use self::read::HEAD;
#[cfg(feature = "postgres")]
pub(crate) use self::wake::OBSERVERS;
use crate::layout::dialect::Dialect;

/// The head of the statement that makes entries, with all columns of an entry.
const ENTER: &str = "INSERT INTO distlock_v1_entries (name, token, attempt, client, kind, weight, \
    lim, ttl, expires, since, holder, value, version, granted)";

/// Writes statements in one dialect.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Script(pub(crate) Dialect);

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

    /// The counters of these names, each once.
    fn slots<'a>(self, names: impl Iterator<Item = &'a LockName>) -> String {
        let slots: BTreeSet<_> = names.map(|name| self.0.slot(name.as_str().as_bytes())).collect();
        let slots: Vec<_> = slots.iter().map(u64::to_string).collect();
        slots.join(", ")
    }

    /// From where to where the names lie that start with a prefix.
    fn range(self, prefix: &str) -> (String, String) {
        // No name contains the byte 0xFF.
        let to = self.0.bytes(&[prefix.as_bytes(), b"\xff"].concat());
        (self.0.bytes(prefix.as_bytes()), to)
    }

    /// A transaction that a power cut must not undo.
    fn kept(self, transaction: &str) -> String {
        match self.0 {
            Dialect::Sqlite => {
                format!("PRAGMA synchronous = FULL; {transaction} PRAGMA synchronous = NORMAL;")
            }
            _ => transaction.to_owned(),
        }
    }

    /// Removes expired entries. An entry counts until it is removed, and it is never renewed after
    /// its expiry: so no holder comes back after the next one was let in.
    fn bury(self, names: &str) -> String {
        let now = self.0.now();
        format!("DELETE FROM distlock_v1_entries WHERE name IN ({names}) AND expires <= {now};")
    }

    /// The entries of these attempts.
    fn entries_of(self, ids: &str) -> String {
        self.select(true, &format!("WHERE attempt IN ({ids})"))
    }
}
