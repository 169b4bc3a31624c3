//! The entry of one attempt in the store, from the request that makes it to the one that removes it.

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use lock_core::{
    Attempt, Clock, Error, FencingToken, Instant, LockName, Request, Result, Term, Wait,
    deadline::safe_until, trace,
};

use crate::{
    entry,
    error::{Failure, Kind},
    layout,
    lease::EtcdLease,
    names::Turn,
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
    /// Until when an unanswered request may still make the key.
    unsettled: Option<Instant>,
}

impl Claim {
    pub(crate) fn new(
        store: &Arc<Store>,
        session: Arc<Session>,
        queue: Arc<str>,
        attempt: &Attempt,
    ) -> Self {
        let key = layout::key(&queue, session.lease, attempt.id()).into();
        Self { store: store.clone(), session, queue, key, unsettled: None }
    }

    /// Makes the entry. `Break` if the request is not to wait and somebody is there.
    async fn enter(
        &mut self,
        request: &Request,
        attempt: &Attempt,
    ) -> Result<ControlFlow<(), Entered>, Failure> {
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
        let insisted = connection.insist(give_up, |member| requests::send_txn(member, &txn)).await;
        self.unsettled = insisted.ambiguous.then(|| Clock::Boot.now() + SETTLED);
        let answer = insisted.result?;
        match request.wait {
            Wait::Try => requests::entered_if_free(answer),
            _ => requests::queued_up(answer, &self.key).map(ControlFlow::Continue),
        }
    }

    /// Waits until every entry before this one is gone.
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

    /// The grant, if the session still lives.
    fn hold(
        self,
        revision: i64,
        request: &Request,
        asked: Instant,
        waited: bool,
    ) -> Result<EtcdLease, Self> {
        let cap = match request.term {
            Term::Fixed => safe_until(asked, request.ttl),
            _ => Instant::NEVER,
        };
        let Some((validity, slot)) = self.session.hold(&request.name, cap) else {
            return Err(self);
        };
        let watcher = &self.store.watcher;
        if !waited {
            watcher.add_young(self.key.clone(), revision, validity.clone());
        } else if !watcher.names().hold(&self.queue, revision, &validity) {
            self.session.unhold(slot);
            return Err(self);
        }
        let token = FencingToken::new(revision.unsigned_abs());
        Ok(EtcdLease::new(self, request, token, validity, slot))
    }

    /// Removes the entry: it is gone when this returns `Ok`, and nothing makes it again.
    ///
    /// # Errors
    ///
    /// What etcd said, if it could not be told for so long that the lease has ended.
    pub(crate) async fn remove(&self) -> Result<()> {
        let connection = &self.store.connection;
        let deleted = requests::delete(connection, &self.key, || self.session.is_over()).await;
        if let Some(settled) = self.unsettled {
            // A late request could make the key once more, on a session that lives on.
            let claim = Self { unsettled: None, ..self.clone() };
            self.store.runtime.spawn(async move {
                Clock::Boot.sleep_until(settled).await;
                if !claim.session.is_over() {
                    let connection = &claim.store.connection;
                    requests::delete(connection, &claim.key, || claim.session.is_over()).await;
                }
            });
        }
        match deleted.result {
            Err(_) if self.session.is_gone() => Ok(()),
            result => result.map_err(|failure| failure.into_error("release", true)),
        }
    }

    /// Removes the entry in the background.
    fn abandon(self) {
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

fn vanished() -> Error {
    Failure::new(Kind::Rejected, "the attempt's entry was deleted by somebody else")
        .into_error("acquire", false)
}

fn contended(name: &LockName) -> Error {
    Error::Contended { name: name.clone() }
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
        let mut claim = Claim::new(store, session.clone(), queue.clone(), attempt);
        let asked = Clock::Boot.now();
        match claim.enter(request, attempt).await {
            Ok(ControlFlow::Continue(entered)) => {
                return settle(claim, entered, request, attempt, asked).await;
            }
            Ok(ControlFlow::Break(())) => return Err(contended(&request.name)),
            // The lease had died before it was used here: nothing was entered, begin again.
            Err(failure) if failure.kind == Kind::LeaseGone => store.sessions.gone(&session),
            Err(failure) => {
                let ambiguous = claim.unsettled.is_some();
                if ambiguous {
                    claim.abandon();
                }
                return Err(failure.into_error("acquire", ambiguous));
            }
        }
    }
}

/// An entry was made: waits for its turn if others are before it.
async fn settle(
    claim: Claim,
    entered: Entered,
    request: &Request,
    attempt: &Attempt,
    asked: Instant,
) -> Result<EtcdLease> {
    let (revision, waits) = (entered.revision, !entered.before.is_empty());
    let mut granted_at = asked;
    let turn = match waits {
        true => claim.wait(entered, request, attempt).await,
        false => Ok(true),
    };
    let error = match turn {
        Ok(true) => {
            if waits {
                granted_at = Clock::Boot.now();
            }
            match claim.hold(revision, request, granted_at, waits) {
                Ok(lease) => return Ok(lease),
                Err(claim_again) => return give_back(claim_again, revision).await,
            }
        }
        Ok(false) => contended(&request.name),
        Err(error) => error,
    };
    claim.store.watcher.names().leave(&claim.queue, revision);
    if attempt.is_cancelled() {
        claim.remove().await?;
    } else {
        claim.abandon();
    }
    Err(error)
}

/// The turn came and the session, or the entry, was gone.
async fn give_back(claim: Claim, revision: i64) -> Result<EtcdLease> {
    claim.store.watcher.names().leave(&claim.queue, revision);
    let error = match claim.session.is_live() {
        true => vanished(),
        false => claim.session_ended(),
    };
    claim.abandon();
    Err(error)
}
