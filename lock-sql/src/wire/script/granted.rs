//! When a lock was granted. Tables of earlier versions have no column for it.

use lock_core::{Instant, Wait};
use uuid::Uuid;

use super::{Grants, Script, Wish, room};
use crate::session::CLOCK;

impl Script {
    /// What tells when an entry was granted.
    pub(super) fn granted(self) -> &'static str {
        match self.1 {
            Grants::Dated => "granted",
            Grants::Undated => self.0.no_number(),
        }
    }

    /// The time of day at a moment of this client's past.
    pub(super) fn time_of_day(self, at: Instant) -> String {
        format!("{} - {}", self.0.wall(), CLOCK.now().since(at).as_micros())
    }

    /// The column, and what a new entry has in it: this moment, unless it has to wait.
    pub(super) fn granted_at_once(self, wish: &Wish<'_>, name: &str) -> (&'static str, String) {
        let wall = self.0.wall();
        match (self.1, wish.wait) {
            (Grants::Undated, _) => ("", String::new()),
            // It does not enter otherwise.
            (Grants::Dated, Wait::Try) => (", granted", format!(", {wall}")),
            (Grants::Dated, _) => {
                let room = room(wish.kind, name);
                (", granted", format!(", CASE WHEN {room} THEN {wall} END"))
            }
        }
    }

    /// Writes down when these attempts were granted, unless it is written already.
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
