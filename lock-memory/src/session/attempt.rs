//! One attempt, as this store has it.

use std::{ops::Deref, sync::Arc};

use lock_core::{
    Instant, Request, Term, Validity, deadline,
    keep::attempt::{End, Progress, Stage},
};
use uuid::Uuid;

use crate::{MemoryStore, defect::Defect, store::state::Grant};

/// An attempt of this client, as far as the client knows. Of what is held, the renewals are counted
/// where a defect has it so.
#[derive(Debug)]
pub(crate) struct Attempt(Progress<(), (), u32>);

impl Deref for Attempt {
    type Target = Progress<(), (), u32>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Attempt {
    pub(crate) fn new(id: Uuid, request: &Request) -> Arc<Self> {
        Arc::new(Self(Progress::new(id, request, request.ttl / 3, ())))
    }

    /// The store has answered that the attempt waits: from now on it is kept alive. Before, a
    /// renewal could come to the store ahead of the entry, and be told that there is none.
    pub(crate) fn waits(&self, sent: Instant) {
        self.change(|stage| {
            if let Stage::Asking(()) = stage {
                *stage = Stage::Waiting { sent, note: () };
            }
        });
    }

    /// The store has pushed a grant. The answer to the request may come after it.
    pub(crate) fn pushed(&self, grant: Grant) {
        self.change(|stage| {
            if let Stage::Asking(()) | Stage::Waiting { .. } = stage {
                *stage = Stage::Granted { sent: grant.at, token: grant.token.value() };
            }
        });
    }

    /// Takes note of a grant of this store: from now on it is held, and renewed.
    ///
    /// # Errors
    ///
    /// How it has ended meanwhile.
    pub(crate) fn hold(&self, store: &MemoryStore, sent: Instant) -> Result<Validity, End> {
        let validity = self.0.hold(sent, 0)?;
        if self.term == Term::Renewed {
            self.mislead(store, &validity, sent);
        }
        Ok(validity)
    }

    /// A renewal that was sent then has found it alive.
    pub(crate) fn renewed(&self, store: &MemoryStore, sent: Instant) {
        self.0.renewed(sent);
        self.change(|stage| {
            if let Stage::Held { validity, note: renewals, .. } = stage {
                *renewals += u32::from(store.has(Defect::StopsRenewing));
                self.mislead(store, validity, sent);
            }
        });
    }

    fn mislead(&self, store: &MemoryStore, validity: &Validity, sent: Instant) {
        if store.has(Defect::TellsTooLate) {
            validity.extend(deadline::safe_until(sent, self.ttl * 2));
        }
    }

    /// Whether a renewal at `now` concerns it.
    pub(crate) fn is_renewed(&self, now: Instant) -> bool {
        let worn_out = |stage: &Stage<(), (), u32>| matches!(stage, Stage::Held { note: 4.., .. });
        self.0.is_renewed(now) && !self.look(worn_out)
    }
}
