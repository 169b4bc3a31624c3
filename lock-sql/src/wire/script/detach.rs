//! A lock that is left to be adopted: its entry gets another attempt.

use lock_core::{Instant, LockName};
use uuid::Uuid;

use super::{Script, floor::above};
use crate::layout::{row::EXCLUSIVE, schema::Grants};

/// The hand-over of an entry from one attempt to another.
pub(crate) struct HandOver<'a> {
    pub(crate) name: &'a LockName,
    pub(crate) token: u64,
    pub(crate) from: Uuid,
    pub(crate) to: Uuid,
    /// The client that is told of the entry's end from now on, and the holder's description. `None`
    /// leaves both as they are.
    pub(crate) holder: Option<(Uuid, &'a str)>,
    /// When it was granted, if its first request did not record it.
    pub(crate) granted: Option<Instant>,
}

impl Script {
    /// Gives a living entry to another attempt, with a fresh TTL, and returns the entry, whichever
    /// attempt has it. Sent again, it finds the new attempt, and renews it. An entry with a token
    /// that is not above the token floor keeps its attempt: a raise looks for it there.
    pub(crate) fn hand_over(self, it: &HandOver<'_>) -> String {
        let (name, token) = (self.name(it.name), it.token);
        let (from, to, now) = (self.id(it.from), self.id(it.to), self.0.now());
        let told = it.holder.map_or(String::new(), |(client, holder)| {
            let (client, holder) = (self.id(client), self.0.bytes(holder.as_bytes()));
            format!(", client = {client}, holder = {holder}")
        });
        let (columns, above) = (self.columns(false), above());
        let granted = match (it.granted, self.1) {
            (Some(at), Grants::Dated) => {
                format!(", granted = COALESCE(granted, {})", self.time_of_day(at))
            }
            _ => String::new(),
        };
        format!(
            "UPDATE distlock_v1_entries SET attempt = {to}, expires = {now} + ttl{told}{granted} \
             WHERE name = {name} AND token = {token} \
             AND (attempt = {to} OR attempt = {from} AND token > {above}) \
             AND kind = {EXCLUSIVE} AND expires > {now}; \
             SELECT {columns} FROM distlock_v1_entries WHERE name = {name} AND token = {token};"
        )
    }
}
