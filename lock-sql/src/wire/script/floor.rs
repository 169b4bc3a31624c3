//! The token floor: it is in the counters themselves, from which every grant counts in its own
//! transaction.

use lock_core::FencingToken;

use super::Script;
use crate::layout::{dialect::Dialect, schema::FLOOR};

impl Script {
    /// Raises each counter to `above`, unless it is as high, and returns the same as
    /// [`floor`](Self::floor). The counters are locked in order, as by sets.
    pub(crate) fn raise_floor(self, above: FencingToken) -> String {
        let raise = format!("UPDATE distlock_v1_slots SET token = {above} WHERE token < {above}");
        let first = format!("distlock_v1_slots (slot, token) VALUES ({FLOOR}, 0)");
        let statements = match self.0 {
            Dialect::Sqlite => format!("INSERT INTO {first} ON CONFLICT DO NOTHING; {raise};"),
            Dialect::MySql => format!("INSERT IGNORE INTO {first}; {raise} ORDER BY slot;"),
            Dialect::Postgres => format!(
                "INSERT INTO {first} ON CONFLICT DO NOTHING; \
                 SELECT slot FROM distlock_v1_slots ORDER BY slot FOR NO KEY UPDATE; {raise};"
            ),
        };
        // The jump of a boot is smaller than a raise that a power cut undoes.
        self.kept(&self.0.transaction(&(statements + &self.floor())))
    }

    /// Returns two numbers: what the floor was raised to, and the greatest token so far.
    pub(crate) fn floor(self) -> String {
        let above = above();
        let newest = "(SELECT COALESCE(MAX(token), 0) FROM distlock_v1_slots)";
        format!("{}; {};", self.number(&above), self.number(newest))
    }

    /// Returns the entries of all names with a token that is not above this one.
    pub(crate) fn up_to(self, token: FencingToken) -> String {
        self.select(false, &format!("WHERE token <= {token} ORDER BY token"))
    }
}

/// What the floor was raised to, as an expression for a statement.
pub(super) fn above() -> String {
    format!("(SELECT COALESCE(MAX(token), 0) FROM distlock_v1_slots WHERE slot = {FLOOR})")
}
