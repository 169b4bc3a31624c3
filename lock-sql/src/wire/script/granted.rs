//! When a lock was granted.

use lock_core::{Clock, Instant};
use uuid::Uuid;

use super::Script;

impl Script {
    /// The time of day at a past moment of this client.
    pub(super) fn time_of_day(self, at: Instant) -> String {
        format!("{} - {}", self.0.wall(), Clock::Boot.now().since(at).as_micros())
    }

    /// Records when these attempts were granted, unless that is recorded already: a part of the
    /// `UPDATE` of `renewed` entries.
    pub(super) fn dated(self, attempts: &[(Uuid, Option<Instant>)]) -> String {
        let when = |(attempt, granted): &(Uuid, Option<Instant>)| {
            Some(format!(" WHEN {} THEN {}", self.id(*attempt), self.time_of_day((*granted)?)))
        };
        let when: String = attempts.iter().filter_map(when).collect();
        match when.as_str() {
            "" => String::new(),
            _ => format!(", granted = COALESCE(renewed.granted, CASE renewed.attempt{when} END)"),
        }
    }
}
