//! A lock that is left to be adopted: its entry gets another attempt.

use lock_core::{Instant, LockName};
use uuid::Uuid;

use super::{Script, floor::above};
use crate::layout::row::EXCLUSIVE;

impl Script {
    /// Gives a living entry to another attempt, with a fresh TTL, and returns the entry, whichever
    /// attempt has it. Sent again, it finds the new attempt, and renews it. An entry with a token
    /// that is not above the token floor keeps its attempt: a raise looks for it there.
    ///
    /// `holder`: the client that is told of the entry's end from now on, and the holder's
    /// description; `None` leaves both as they are. `granted`: when it was granted, if its first
    /// request did not record it.
    pub(crate) fn hand_over(
        self,
        name: &LockName,
        token: u64,
        from: Uuid,
        to: Uuid,
        holder: Option<(Uuid, &str)>,
        granted: Option<Instant>,
    ) -> String {
        let (name, from, to, now) = (self.name(name), self.id(from), self.id(to), self.0.now());
        let owner = holder.map_or(String::new(), |(client, holder)| {
            let (client, holder) = (self.id(client), self.0.bytes(holder.as_bytes()));
            format!(", client = {client}, holder = {holder}")
        });
        let above = above();
        let granted = granted.map_or(String::new(), |at| {
            format!(", granted = COALESCE(granted, {})", self.time_of_day(at))
        });
        let change = format!(
            "UPDATE distlock_v1_entries SET attempt = {to}, expires = {now} + ttl{owner}{granted} \
             WHERE name = {name} AND token = {token} \
             AND (attempt = {to} OR attempt = {from} AND token > {above}) \
             AND kind = {EXCLUSIVE} AND expires > {now}; "
        );
        change + &self.select(false, &format!("WHERE name = {name} AND token = {token}"))
    }
}
