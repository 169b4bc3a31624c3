//! One attempt on this store.

use std::{ops::Deref, sync::Arc};

use lock_core::{
    Error, Instant, Request, Term, Validity,
    keep::{
        attempt::{End, Progress, Stage},
        renewal::RENEWALS_PER_TTL,
    },
    validity,
};
use uuid::Uuid;

use crate::{MemoryStore, defect::Defect, store::state::Grant};

/// An attempt of this client, as the client knows it. While it holds, a defect may count its
/// renewals.
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
        Arc::new(Self(Progress::new(id, request, request.ttl / RENEWALS_PER_TTL, ())))
    }

    /// Takes note of an answer that the attempt waits. From now on it is renewed. An earlier
    /// renewal could arrive before the entry exists, and find none.
    pub(crate) fn waits(&self, sent: Instant) {
        self.change(|stage| {
            if let Stage::Asking(()) = stage {
                *stage = Stage::Waiting { sent, note: () };
            }
        });
    }

    /// Takes note of a push of a grant. The answer to the request may come after it.
    pub(crate) fn pushed(&self, grant: Grant) {
        self.change(|stage| {
            if let Stage::Asking(()) | Stage::Waiting { .. } = stage {
                *stage = Stage::Granted { sent: grant.at, token: grant.token.value() };
            }
        });
    }

    /// Takes note of a grant of this store. From now on the lock is held and renewed. Fails with
    /// its end, if it has ended meanwhile.
    pub(crate) fn hold(&self, store: &MemoryStore, sent: Instant) -> Result<Validity, End> {
        let validity = self.0.hold(sent, 0)?;
        if self.term == Term::Renewed {
            self.mislead(store, &validity, sent);
        }
        Ok(validity)
    }

    /// Returns the error if it ended before it held.
    pub(crate) fn ended(&self, end: End) -> Error {
        end.error(("memory", "the store"), self.ttl)
    }

    /// Takes note that a renewal sent at `sent` has found the entry.
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
            validity.extend(validity::safe_until(sent, self.ttl * 2));
        }
    }

    /// Returns whether a renewal at `now` includes it.
    pub(crate) fn is_renewed(&self, now: Instant) -> bool {
        let worn_out = |stage: &Stage<(), (), u32>| matches!(stage, Stage::Held { note: 4.., .. });
        self.0.is_renewed(now) && !self.look(worn_out)
    }
}
