//! Keeping entries alive, and removing what is long dead.

use uuid::Uuid;

use super::{Script, publish::KEPT};

impl Script {
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

    /// Answers which of these attempts have an entry.
    #[cfg(feature = "postgres")]
    pub(crate) fn held(self, attempts: impl IntoIterator<Item = Uuid>) -> String {
        self.own(&self.ids(attempts))
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
