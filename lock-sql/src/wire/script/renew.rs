//! Renewal of entries, and removal of entries that expired long ago.

use uuid::Uuid;

use super::{Script, publish::KEPT};

impl Script {
    /// Renews the entries that are still alive, and returns them.
    pub(crate) fn renew(self, attempts: impl IntoIterator<Item = Uuid>) -> String {
        let (ids, now) = (self.ids(attempts), self.0.now());
        let columns = self.columns(false);
        format!(
            "UPDATE distlock_v1_entries SET expires = {now} + ttl \
             WHERE attempt IN ({ids}) AND expires > {now}; \
             SELECT {columns} FROM distlock_v1_entries WHERE attempt IN ({ids}) AND expires > {now};"
        )
    }

    /// Returns the entries of these attempts.
    pub(crate) fn held(self, attempts: impl IntoIterator<Item = Uuid>) -> String {
        self.own(&self.ids(attempts))
    }

    /// Removes entries and values that expired long ago, of names that are no longer asked for.
    pub(crate) fn sweep(self) -> String {
        let (now, kept) = (self.0.now(), KEPT.as_micros());
        format!(
            "DELETE FROM distlock_v1_entries WHERE expires < {now} - {kept}; \
             DELETE FROM distlock_v1_values WHERE moment < {now} - {kept};"
        )
    }
}
