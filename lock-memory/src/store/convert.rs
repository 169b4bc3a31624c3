//! Conversions: from exclusive to shared and back.

use lock_core::{FencingToken, Kind, LockName, keep::poison::lock};
use uuid::Uuid;

use super::{MemoryStore, state::Upgrade};

impl MemoryStore {
    /// Makes an exclusive entry a shared one. Returns whether it is still there.
    pub(crate) fn downgrade(&self, name: &LockName, attempt: Uuid) -> bool {
        let mut found = false;
        self.change(name, |entries| {
            if let Some(mine) = entries.iter_mut().find(|entry| entry.attempt == attempt) {
                mine.kind = Kind::Shared;
                found = true;
            }
        });
        found
    }

    /// Makes a shared entry an exclusive one with a new grant, if it is the only one.
    pub(crate) fn try_upgrade(&self, name: &LockName, attempt: Uuid) -> Upgrade {
        let mut upgrade = Upgrade::Gone;
        self.change(name, |entries| {
            let alone = entries.len() == 1;
            let mine = entries.iter_mut().find(|entry| entry.attempt == attempt);
            upgrade = match mine {
                None => Upgrade::Gone,
                // A repeated request: the answer was lost.
                Some(mine) if mine.kind == Kind::Exclusive => Upgrade::Done(FencingToken::new(0)),
                Some(_) if !alone => Upgrade::Busy,
                Some(mine) => {
                    // Granted anew, with a new token, when the name is settled.
                    (mine.kind, mine.granted) = (Kind::Exclusive, None);
                    Upgrade::Done(FencingToken::new(0))
                }
            };
        });
        if let Upgrade::Done(_) = upgrade {
            let granted = lock(&self.0.state).grant_of(name, attempt);
            upgrade = granted.map_or(Upgrade::Gone, |grant| Upgrade::Done(grant.token));
        }
        upgrade
    }
}
