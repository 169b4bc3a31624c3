//! When a lock was granted.

use lock_core::{Clock, Instant};
use uuid::Uuid;

use super::Script;

impl Script {
    /// The time of day at a past moment of this client.
    pub(super) fn time_of_day(self, at: Instant) -> String {
        format!("{} - {}", self.0.wall(), Clock::Boot.now().since(at).as_micros())
    }

    /// Records when these attempts were granted, unless that is recorded already.
    pub(crate) fn date(self, granted: &[(Uuid, Instant)]) -> String {
        let ids = self.ids(granted.iter().map(|(attempt, _)| *attempt));
        let when = |(attempt, at): &(Uuid, Instant)| {
            format!(" WHEN {} THEN {}", self.id(*attempt), self.time_of_day(*at))
        };
        let when: String = granted.iter().map(when).collect();
        format!(
            "UPDATE distlock_v1_entries SET granted = CASE attempt{when} END \
             WHERE attempt IN ({ids}) AND granted IS NULL;"
        )
    }
}
