//! The entry of one attempt in the store, from the request that makes it to the one that removes it.

use std::{sync::Arc, time::Duration};

use etcd_client::Txn;
use lock_core::{
    Attempt, Clock, Error, Instant, Request, Result, Term, Wait,
    deadline::safe_until,
    limit_conflict,
    queue::{self, Verdict},
};

use crate::{
    connection::Insisted,
    entry,
    error::{Failure, Kind, STORE},
    hold::Hold,
    layout::{self, Role, role},
    lease::EtcdLease,
    named::Turn,
    queue::Place,
    requests::{self, Entered, NewEntry},
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
    /// What belongs to the entry may stand beside it.
    pub(crate) marked: bool,
    /// The entry's create revision, once it is known.
    pub(crate) revision: Option<i64>,
    /// Until then an acquiring request that was not answered may still make the entry.
    pub(crate) unsettled: Option<Instant>,
}

impl Claim {
    pub(crate) fn new(
        store: &Arc<Store>,
        session: Arc<Session>,
        queue: Arc<str>,
        role: Role,
    ) -> Self {
        let slot = store.slots.take(&queue);
        let key = layout::key(&queue, session.lease, slot, role).into();
        let (store, marked, revision, unsettled) = (store.clone(), false, None, None);
        Self { store, session, queue, key, slot, marked, revision, unsettled }
    }

    /// Whether it has a value for everybody.
    pub(crate) fn is_candidate(&self) -> bool {
        role(self.key.as_bytes()) == Role::Candidate
    }

    /// Makes the entry. Otherwise answers whom it found there: the request is not to wait, or the
    /// key is in use.
    async fn enter(
        &mut self,
        request: &Request,
        attempt: &Attempt,
    ) -> Result<Result<Entered, Vec<Place>>, Failure> {
        let (queue, key) = (self.queue.clone(), self.key.clone());
        let note = entry::note(&request.holder, attempt.id());
        let value = self.is_candidate().then(|| request.value.as_deref().unwrap_or_default());
        let entry = NewEntry { key: &key, lease: self.session.lease, note: &note, value };
        if request.wait == Wait::Try {
            let alone = request.kind == queue::Kind::Exclusive;
            let txn = match alone {
                true => requests::enter_if_free(&queue, entry),
                false => requests::enter_or_list(&queue, entry),
            };
            let entered = self.send(&txn, &note, request, attempt).await?;
            match &entered {
                // Beside others there is room: nobody is disturbed by an entry that stays.
                Err(found) if !alone && refusal(request, found).is_none() => {}
                _ => return Ok(entered),
            }
        }
        let txn = requests::queue_up(&queue, entry);
        self.send(&txn, &note, request, attempt).await
    }

    /// Sends the transaction that is to make the entry until there is an answer.
    pub(crate) async fn send(
        &mut self,
        txn: &Txn,
        note: &[u8],
        request: &Request,
        attempt: &Attempt,
    ) -> Result<Result<Entered, Vec<Place>>, Failure> {
        let patience = Clock::Boot.now() + request.ttl;
        let give_up = || {
            attempt.is_cancelled()
                || self.session.ended.is_cancelled()
                || Clock::Boot.now() >= patience
        };
        let connection = &self.store.connection;
        let insisted = connection.insist(&give_up, |member| requests::send_txn(member, txn)).await;
        if insisted.ambiguous {
            self.unsettled = Some(Clock::Boot.now() + SETTLED);
        }
        let mut entered = requests::entered(insisted.result?)?;
        if entered.is_err() && insisted.ambiguous {
            let standing = requests::standing(connection, &self.queue, &self.key, note, give_up);
            if let Some(standing) = Box::pin(standing).await? {
                entered = Ok(standing);
            }
        }
        self.revision = entered.as_ref().ok().map(|entered| entered.revision);
        Ok(entered)
    }

    /// Waits until the entries before this one leave room for it. Answers whether it came to that.
    async fn wait(&self, entered: Entered, request: &Request, attempt: &Attempt) -> Result<bool> {
        let Entered { revision, before } = entered;
        attempt.queued(&request.name, Some(before.len()));
        let own = Place { revision, key: self.key.as_bytes().to_vec(), kind: request.kind };
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
        if waits && !self.store.watcher.names().hold(&self.queue, revision, &validity) {
            self.session.unhold(slot);
            return Err((self, vanished()));
        }
        let mut hold = Hold::new(self, revision, request.kind);
        if !waits {
            hold.watch(&validity);
        }
        Ok(EtcdLease::new(hold, request, attempt.id(), validity, slot))
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
        self.retire(deleted.ambiguous);
        match deleted.result {
            Err(_) if self.session.is_gone() => Ok(()),
            result => result.map_err(|failure| failure.into_error("release", true)),
        }
    }

    async fn delete(&self) -> Insisted<()> {
        let connection = &self.store.connection;
        requests::delete(connection, &self.key, self.marked, || self.session.is_over()).await
    }

    /// The entry is gone. The key is the next attempt's to use, once no late request can touch it.
    pub(crate) fn retire(&self, deleted_in_doubt: bool) {
        let late_delete = deleted_in_doubt.then(|| Clock::Boot.now() + SETTLED);
        match self.unsettled.max(late_delete) {
            None => self.free(),
            Some(until) => drop(self.store.runtime.spawn(self.clone().settle_down(until))),
        }
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

    pub(crate) fn free(&self) {
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
            Ok(()) if self.session.is_gone() => vanished(),
            Ok(()) => {
                let silent = "the session in which the attempt waited could not be renewed in time";
                Failure::new(Kind::LeaseGone, silent).into_error("acquire", false)
            }
        }
    }
}

/// The entry's deletion may come to us before the word that the lease has ended: what the caller
/// does next is the same.
fn vanished() -> Error {
    Error::PlaceLost { store: STORE }
}

fn contended(request: &Request) -> Error {
    Error::Contended { name: request.name.clone() }
}

/// Why an entry behind others does not hold the lock yet, or never will; `None` if it does.
fn refusal(request: &Request, before: &[Place]) -> Option<Error> {
    let mut before: Vec<_> = before.iter().map(|place| (place.revision, place.kind)).collect();
    // Lists come in the order of their keys, and the first in line sets the number of permits.
    before.sort_unstable_by_key(|(revision, _)| *revision);
    let (kind, before) = (request.kind, before.into_iter().map(|(_, k)| k).collect::<Vec<_>>());
    match queue::other_limit(before.iter().copied(), kind) {
        Some(found) => Some(limit_conflict(request, found)),
        None => (queue::judge(&before, kind) != Verdict::Admitted).then(|| contended(request)),
    }
}

/// One attempt, from the request to the grant.
pub(crate) async fn acquire(
    store: &Arc<Store>,
    request: &Request,
    attempt: &Attempt,
) -> Result<EtcdLease> {
    let queue = store.layout.queue(&request.name)?;
    let role = match (&request.value, request.kind) {
        (Some(_), queue::Kind::Exclusive) => Role::Candidate,
        (_, kind) => Role::Ours(kind),
    };
    loop {
        let session = store.sessions.get(request.ttl, || attempt.is_cancelled()).await?;
        let mut claim = Claim::new(store, session.clone(), queue.clone(), role);
        let asked = Clock::Boot.now();
        let error = match claim.enter(request, attempt).await {
            Ok(Ok(entered)) => match claim.settle(entered, request, attempt, asked).await {
                Ok(lease) => return Ok(lease),
                Err((claim, error)) => {
                    let revision = claim.revision.unwrap_or_default();
                    store.watcher.names().leave(&claim.queue, revision);
                    return Err(Box::pin(give_up(claim, attempt, error)).await);
                }
            },
            Ok(Err(found)) if request.wait == Wait::Try => {
                refusal(request, &found).unwrap_or_else(|| contended(request))
            }
            // The key is there and is not ours: a request that came later than any should has made
            // it. It goes, and this attempt takes the next key.
            Ok(Err(_)) => {
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
pub(crate) async fn give_up(claim: Claim, attempt: &Attempt, error: Error) -> Error {
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
