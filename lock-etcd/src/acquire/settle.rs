//! The wait for an entry's turn, and the grant.

use lock_core::{
    Attempt, Clock, Error, Instant, Request, Result, Term, Wait, deadline::safe_until,
};

use crate::{
    acquire::{
        hold::Hold,
        refusal::{contended, refusal},
    },
    error::{Failure, FailureKind},
    layout::listing::QueueEntry,
    lease::EtcdLease,
    queue::watched::Told,
    session::attempt::{OwnEntry, vanished},
    wire::requests::Entered,
};

impl OwnEntry {
    /// Waits until the entries before this one leave room for it. Returns false if the caller has
    /// left.
    async fn wait(&self, entered: Entered, request: &Request, attempt: &Attempt) -> Result<bool> {
        let Entered { revision, before, .. } = entered;
        attempt.queued(&request.name, Some(before.len()));
        let own = QueueEntry { revision, key: self.key.as_bytes().to_vec(), kind: request.kind };
        let told =
            self.store.watcher.side().enter(&self.queue, attempt.id(), own, before, request.ttl);
        let turn = tokio::select! {
            biased;
            () = attempt.cancelled() => return Ok(false),
            () = self.session.ended.cancelled() => None,
            turn = told => turn.ok(),
        };
        match turn {
            Some(Told::Yours) => Ok(true),
            Some(Told::Gone) => Err(vanished()),
            Some(Told::Denied(why)) => {
                Err(Failure::new(FailureKind::Denied, &*why).into_error("acquire", false))
            }
            None => Err(self.session_ended()),
        }
    }

    /// Waits for the turn and takes it. Returns the entry if it gets no lock.
    pub(crate) async fn settle(
        self,
        entered: Entered,
        request: &Request,
        attempt: &Attempt,
        asked: Instant,
    ) -> Result<EtcdLease, (Self, Error)> {
        let (revision, refusal) = (entered.revision, refusal(request, &entered.before));
        let waits = match refusal {
            None => false,
            Some(Error::Contended { .. }) if request.wait == Wait::Queue => true,
            Some(error) => return Err((self, error)),
        };
        if waits {
            match Box::pin(self.wait(entered, request, attempt)).await {
                Ok(true) => {}
                Ok(false) => return Err((self, contended(request))),
                Err(error) => return Err((self, error)),
            }
        }
        let granted_at = if waits { Clock::Boot.now() } else { asked };
        let cap = match request.term {
            Term::Fixed => safe_until(granted_at, request.ttl),
            _ => Instant::NEVER,
        };
        let Some((validity, slot)) = self.session.hold(&request.name, cap) else {
            let error = self.session_ended();
            return Err((self, error));
        };
        if waits && !self.store.watcher.side().hold(&self.queue, revision, &validity) {
            self.session.unhold(slot);
            return Err((self, vanished()));
        }
        let hold = Hold::new(self, revision);
        if !waits {
            hold.watch(&validity);
        }
        Ok(EtcdLease::new(hold, request, attempt.id(), validity, slot))
    }
}
