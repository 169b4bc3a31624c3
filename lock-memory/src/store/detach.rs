//! Detaching and adopting a lock: its entry gets another owner.

use lock_core::{Clock, FencingToken, LockName, LossReason, Result};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::{
    MemoryStore,
    state::{Asked, Grant, Stored},
};

/// Returns whether a raise of the floor looks for this entry. Then it must not get another owner.
fn is_below(entry: &Stored, floor: FencingToken) -> bool {
    entry.granted.is_some_and(|grant| grant.token <= floor)
}

impl MemoryStore {
    /// Gives the attempt's own entry another owner, of no client. Returns whether the entry was
    /// still there. A repeated request finds the new owner.
    pub(crate) fn detach(&self, name: &LockName, from: Uuid, to: Uuid) -> bool {
        let floor = self.token_floor().above;
        let owner = |entry: &&mut Stored| {
            entry.attempt == to || entry.attempt == from && !is_below(entry, floor)
        };
        self.change(name, |entries| {
            let Some(entry) = entries.iter_mut().find(owner) else { return false };
            entry.attempt = to;
            entry.expires = Clock::Tokio.now() + entry.ttl;
            // No client gets pushes about it.
            entry.tell = mpsc::unbounded_channel().0;
            true
        })
    }

    /// Gives a detached entry to the attempt. A repeated request finds that the attempt has it.
    pub(crate) fn adopt(
        &self,
        asked: &Asked,
        from: Uuid,
        token: FencingToken,
    ) -> Result<Grant, LossReason> {
        let same = |entry: &&mut Stored| entry.granted.is_some_and(|grant| grant.token == token);
        let (hooks, floor) = (self.hooks(), self.token_floor().above);
        let adopted = self.change(&asked.request.name, |entries| {
            let entry = entries.iter_mut().find(same)?;
            if !hooks.may_adopt(entry, [from, asked.attempt]) {
                return Some(Err(LossReason::Adopted));
            }
            if entry.attempt == from && is_below(entry, floor) {
                return None;
            }
            let now = Clock::Tokio.now();
            entry.attempt = asked.attempt;
            entry.expires = now + entry.ttl;
            entry.holder = asked.request.holder.clone();
            entry.tell = asked.tell.clone();
            entry.network = asked.network.clone();
            entry.granted.map(|grant| Ok(Grant { at: now, ..grant }))
        });
        adopted.unwrap_or(Err(LossReason::TicketOver))
    }
}
