//! Leaving a queue.

use std::{collections::BTreeMap, sync::Arc};

use lock_core::LockName;
use uuid::Uuid;

use super::{Script, wake::Leavers};
use crate::session::attempt::Attempt;

impl Script {
    /// Removes entries, and wakes the next clients. `doubtful`: a request to enter that was not
    /// answered may still be under way.
    pub(crate) fn leave(self, attempts: &[Arc<Attempt>], doubtful: bool, client: Uuid) -> String {
        let mut queues = BTreeMap::<_, Vec<_>>::new();
        for attempt in attempts {
            queues.entry(&attempt.name).or_default().push(attempt);
        }
        let names: Vec<_> = queues.keys().copied().collect();
        let after = match doubtful {
            true => self.after_arrivals(&names),
            false => self.after_arrivals_if_pushed(&names),
        };
        let ids = self.ids(attempts.iter().map(|attempt| attempt.id));
        let names = self.names(names);
        let remove = remove(&ids, &names);
        if after.is_empty() {
            return remove;
        }
        let one_by_one = |(name, attempts): (&&LockName, &Vec<&Arc<Attempt>>)| {
            let ids = self.ids(attempts.iter().map(|attempt| attempt.id));
            self.wake(&self.name(name), &ids, Leavers::of(attempts.iter().copied()), client)
        };
        let wake = match Leavers::of(attempts.iter()) {
            Leavers::Writers if queues.len() > 1 => self.wake_after_writers(&names, &ids, client),
            _ => queues.iter().map(one_by_one).collect(),
        };
        let tell = match attempts.iter().any(|attempt| attempt.leads) {
            true => self.tell_observers(&names),
            false => String::new(),
        };
        self.0.transaction(&(after + &wake + &remove + &tell))
    }

    /// Removes an entry of any client, and returns it.
    pub(crate) fn revoke(self, name: &LockName, attempt: Uuid, client: Uuid) -> String {
        let (names, id) = (self.name(name), self.id(attempt));
        let statements = self.after_arrivals(&[name])
            + &self.entries_of(&id)
            + &self.tell_victim(&names, attempt)
            + &self.wake(&names, &id, Leavers::Anybody, client)
            + &remove(&id, &names)
            + &self.tell_observers(&names);
        self.0.transaction(&statements)
    }
}

/// Removes entries of these names.
fn remove(ids: &str, names: &str) -> String {
    format!("DELETE FROM distlock_v1_entries WHERE attempt IN ({ids}) AND name IN ({names});")
}
