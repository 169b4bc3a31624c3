//! The fencing token of an attempt: the next number of its name's counter.

use lock_core::LockName;

use super::Script;
use crate::layout::dialect::Dialect;

impl Script {
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
}
