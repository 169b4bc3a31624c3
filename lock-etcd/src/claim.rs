//! The entry of one attempt in the store, from the request that makes it to the one that removes it.

use std::{sync::Arc, time::Duration};

use lock_core::{
    Attempt, Clock, Error, FencingToken, Instant, Request, Result, Term, Wait,
    deadline::safe_until, trace,
};

use crate::{
    connection::Insisted,
    entry,
    error::{Failure, Kind},
    layout,
    lease::EtcdLease,
    named::Turn,
    queue::Place,
    requests::{self, Entered},
    session::Session,
    store::Store,
};

/// How long after an unanswered request etcd may still carry it out: a member gives a request 5 s
/// and two elections; messages between members are dropped sooner than that.
const SETTLED: Duration = Duration::from_secs(10);

/// One attempt's key.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    pub(crate) store: Arc<Store>,
    pub(crate) session: Arc<Session>,
    pub(crate) queue: Arc<str>,
    pub(crate) key: Arc<str>,
    slot: u32,
    /// The entry's create revision, once it is known.
    revision: Option<i64>,
    /// Until then an acquiring request that was not answered may still make the entry.
    unsettled: Option<Instant>,
}

impl Claim {
    fn new(store: &Arc<Store>, session: Arc<Session>, queue: Arc<str>) -> Self {
        let slot = store.slots.take(&queue);
        let key = layout::key(&queue, session.lease, slot).into();
        Self { store: store.clone(), session, queue, key, slot, revision: None, unsettled: None }
    }

    /// Makes the entry. `None` if the request is not to wait and somebody is there, or if the key is
    /// in use.
    async fn enter(
        &mut self,
        request: &Request,
        attempt: &Attempt,
    ) -> Result<Option<Entered>, Failure> {
        let (queue, key, lease) = (&*self.queue, &*self.key, self.session.lease);
        let note = entry::note(&request.holder, attempt.id());
        let txn = match request.wait {
            Wait::Try => requests::enter_if_free(queue, key, lease, &note),
            _ => requests::queue_up(queue, key, lease, &note),
        };
        let patience = Clock::Boot.now() + request.ttl;
        let give_up = || {
            attempt.is_cancelled()
                || self.session.ended.is_cancelled()
                || Clock::Boot.now() >= patience
        };
        let connection = &self.store.connection;
        let insisted = connection.insist(&give_up, |member| requests::send_txn(member, &txn)).await;
        self.unsettled = insisted.ambiguous.then(|| Clock::Boot.now() + SETTLED);
        let mut entered = requests::entered(insisted.result?)?;
        if entered.is_none() && insisted.ambiguous {
            let standing = requests::standing(connection, queue, key, &note, give_up);
            entered = Box::pin(standing).await?;
        }
        self.revision = entered.as_ref().map(|entered| entered.revision);
        Ok(entered)
    }

    /// Waits until every entry before this one is gone. Answers whether it came to that.
    async fn wait(&self, entered: Entered, request: &Request, attempt: &Attempt) -> Result<bool> {
        let Entered { revision, before } = entered;
        trace::queued(&request.name, attempt.id(), before.len());
        let own = Place { revision, key: self.key.as_bytes().to_vec() };
        let told = self.store.watcher.enter(&self.queue, own, before, request.ttl);
        let turn = tokio::select! {
            biased;
            () = attempt.cancelled() => return Ok(false),
            () = self.session.ended.cancelled() => None,
            turn = told => turn.ok(),
        };
        match turn {
            Some(Turn::Yours) => Ok(true),
            Some(Turn::Gone) => Err(vanished()),
            None => Err(self.session_ended()),
        }
    }

    /// Waits for the turn and takes it; the claim again if that came to nothing.
    async fn settle(
        self,
        entered: Entered,
        request: &Request,
        attempt: &Attempt,
        asked: Instant,
    ) -> Result<EtcdLease, (Self, Error)> {
        let (revision, waits) = (entered.revision, !entered.before.is_empty());
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
        let watcher = &self.store.watcher;
        let over = if !waits {
            watcher.add_young(self.key.clone(), revision, validity.clone())
        } else if watcher.names().hold(&self.queue, revision, &validity) {
            Arc::default()
        } else {
            self.session.unhold(slot);
            return Err((self, vanished()));
        };
        let token = FencingToken::new(revision.unsigned_abs());
        Ok(EtcdLease::new(self, request, token, validity, slot, over))
    }

    /// Removes the entry: it is gone when this returns `Ok`, and nothing makes it again. Not to be
    /// called again then: the key may be a later attempt's.
    ///
    /// # Errors
    ///
    /// What etcd said, if it refuses, or could not be told for so long that the lease has ended.
    pub(crate) async fn remove(&self) -> Result<()> {
        let deleted = self.delete().await;
        if deleted.result.is_err() && !self.session.is_over() {
            // The key stays this attempt's.
            return deleted.result.map_err(|failure| failure.into_error("release", false));
        }
        let late_delete = deleted.ambiguous.then(|| Clock::Boot.now() + SETTLED);
        match self.unsettled.max(late_delete) {
            None => self.free(),
            Some(until) => drop(self.store.runtime.spawn(self.clone().settle_down(until))),
        }
        match deleted.result {
            Err(_) if self.session.is_gone() => Ok(()),
            result => result.map_err(|failure| failure.into_error("release", true)),
        }
    }

    async fn delete(&self) -> Insisted<()> {
        let connection = &self.store.connection;
        requests::delete(connection, &self.key, || self.session.is_over()).await
    }

    /// Some request was not answered. A late acquire could make the entry once more, on a session
    /// that lives on, and a late delete could hit the key's next user. So the key rests until
    /// neither can come any more, and is deleted once more.
    async fn settle_down(self, mut until: Instant) {
        loop {
            Clock::Boot.sleep_until(until).await;
            if self.session.is_over() || !self.delete().await.ambiguous {
                return self.free();
            }
            until = Clock::Boot.now() + SETTLED;
        }
    }

    fn free(&self) {
        self.store.slots.give(&self.queue, self.slot);
    }

    /// Removes the entry in the background.
    pub(crate) fn abandon(self) {
        let runtime = self.store.runtime.clone();
        runtime.spawn(async move { drop(self.remove().await) });
    }

    fn session_ended(&self) -> Error {
        match self.store.sessions.check_open() {
            Err(closed) => closed,
            Ok(()) => {
                Failure::new(Kind::LeaseGone, "the session in which the attempt waited ended")
                    .into_error("acquire", false)
            }
        }
    }
}

/// The entry's deletion may come to us before the word that the lease has ended: what the caller
/// does next is the same.
fn vanished() -> Error {
    Failure::new(Kind::LeaseGone, "the attempt's entry is gone: its lease ended, or it was deleted")
        .into_error("acquire", false)
}

fn contended(request: &Request) -> Error {
    Error::Contended { name: request.name.clone() }
}

/// One attempt, from the request to the grant.
pub(crate) async fn acquire(
    store: &Arc<Store>,
    request: &Request,
    attempt: &Attempt,
) -> Result<EtcdLease> {
    let queue = store.layout.queue(&request.name)?;
    loop {
        let session = store.sessions.get(request.ttl, || attempt.is_cancelled()).await?;
        let mut claim = Claim::new(store, session.clone(), queue.clone());
        let asked = Clock::Boot.now();
        let error = match claim.enter(request, attempt).await {
            Ok(Some(entered)) => match claim.settle(entered, request, attempt, asked).await {
                Ok(lease) => return Ok(lease),
                Err((claim, error)) => {
                    let revision = claim.revision.unwrap_or_default();
                    store.watcher.names().leave(&claim.queue, revision);
                    return Err(Box::pin(give_up(claim, attempt, error)).await);
                }
            },
            Ok(None) if request.wait == Wait::Try => contended(request),
            // The key is there and is not ours: a request that came later than any should has made
            // it. It goes, and this attempt takes the next key.
            Ok(None) => {
                claim.abandon();
                continue;
            }
            // The lease had died before it was used here: nothing was made, begin again.
            Err(failure) if failure.kind == Kind::LeaseGone => {
                claim.free();
                store.sessions.gone(&session);
                continue;
            }
            Err(failure) => failure.into_error("acquire", claim.unsettled.is_some()),
        };
        return Err(Box::pin(give_up(claim, attempt, error)).await);
    }
}

/// Removes what an attempt left: at once if its caller has left and only this is left to do, else in
/// the background.
async fn give_up(claim: Claim, attempt: &Attempt, error: Error) -> Error {
    if claim.revision.is_none() && claim.unsettled.is_none() {
        claim.free();
    } else if attempt.is_cancelled() {
        // The session's end removes it otherwise.
        drop(claim.remove().await);
    } else {
        claim.abandon();
    }
    error
}
