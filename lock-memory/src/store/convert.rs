//! Conversions: from exclusive to shared and back.

use lock_core::{Kind, LockName, keep::poison::lock};
use uuid::Uuid;

use super::{MemoryStore, state::Upgrade};
use crate::defect::Defect;

impl MemoryStore {
    /// Makes an exclusive entry a shared one. Returns whether it is still there.
    pub(crate) fn downgrade(&self, name: &LockName, attempt: Uuid) -> bool {
        self.change_own(name, attempt, |mine| mine.kind = Kind::Shared)
    }

    /// Makes a shared entry an exclusive one with a new grant, if it is the only one.
    pub(crate) fn try_upgrade(&self, name: &LockName, attempt: Uuid) -> Upgrade {
        let exclusive = self.change(name, |entries| {
            let alone = entries.len() == 1;
            let mine = entries.iter_mut().find(|entry| entry.attempt == attempt)?;
            // It is exclusive already if the answer to an earlier request was lost.
            if alone && (mine.kind != Kind::Exclusive || self.has(Defect::UpgradesAnew)) {
                // Granted anew, with a new token, when the name is settled.
                (mine.kind, mine.granted) = (Kind::Exclusive, None);
            }
            Some(mine.kind == Kind::Exclusive)
        });
        match exclusive {
            None => Upgrade::Gone,
            Some(false) => Upgrade::Busy,
            Some(true) => {
                let grant = lock(&self.0.state).grant_of(name, attempt);
                grant.map_or(Upgrade::Gone, |grant| Upgrade::Done(grant.token))
            }
        }
    }
}
