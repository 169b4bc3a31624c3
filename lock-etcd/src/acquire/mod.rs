//! The entry of one attempt in the store, from the request that makes it to the one that removes
//! it.

pub(crate) mod convert;
pub(crate) mod detach;
pub(crate) mod hold;
pub(crate) mod set;

use std::sync::Arc;

use etcd_client::Txn;
use lock_core::{
    Attempt, Clock, Error, Instant, Request, Result, Term, Wait,
    deadline::safe_until,
    limit_conflict,
    queue::{self, Verdict},
};

use crate::{
    acquire::hold::Hold,
    error::{Failure, Kind, STORE},
    layout::{
        floor::Record,
        key_slots::Slot,
        keys::{self, Role, role},
        listing::Place,
        note,
    },
    lease::EtcdLease,
    queue::watched::Turn,
    session::{
        Session, User,
        janitor::{self, Leftover},
        kept,
        store::Store,
    },
    wire::{
        answer::Header,
        backoff::Pause,
        reads,
        requests::{self, Entered, Guard, NewEntry, Outcome, Terms},
        turns::unsent,
    },
};

/// What an attempt may have in the store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Stake {
    Nothing,
    /// Perhaps an entry: a request that is to make it was not answered. If it was sent in an epoch,
    /// it may still make it as long as that epoch lasts.
    Doubtful(Option<i64>),
    /// The entry with this create revision.
    Entry(i64),
}

impl Stake {
    /// The epoch that must be over before nothing makes the entry any more.
    pub(crate) fn late(self) -> Option<i64> {
        match self {
            Self::Doubtful(epoch) => epoch,
            Self::Nothing | Self::Entry(_) => None,
        }
    }
}

/// One attempt's key.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) store: Arc<Store>,
    pub(crate) session: Arc<Session>,
    pub(crate) queue: Arc<str>,
    pub(crate) key: Arc<str>,
    slot: Arc<Slot>,
    /// `None` once the attempt is over.
    user: Option<User>,
    /// What belongs to the entry may stand beside it.
    pub(crate) marked: bool,
    /// Changed by [`set_stake`](Self::set_stake).
    pub(crate) stake: Stake,
    /// Of the answer that told of the entry.
    pub(crate) header: Header,
    /// The token floor that the entry counts from.
    pub(crate) floor: u64,
}

/// How long an attempt goes on without an answer.
pub(crate) struct Patience<'a> {
    attempt: &'a Attempt,
    session: &'a Session,
    until: Instant,
}

impl Patience<'_> {
    fn is_over(&self) -> bool {
        self.attempt.is_cancelled()
            || self.session.ended.is_cancelled()
            || Clock::Boot.now() >= self.until
    }

    /// Waits for an answer. It is of use also to a caller that has left: it tells what there is to
    /// remove.
    async fn answer<T>(
        &self,
        call: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            answer = call => answer,
            () = self.session.ended.cancelled() => {
                Err(Failure::new(Kind::LeaseGone, "the session ended before the answer"))
            }
            () = Clock::Boot.sleep_until(self.until) => {
                Err(Failure::new(Kind::Silent, "no answer before the caller's time was over"))
            }
        }
    }

    async fn over(&self) {
        tokio::select! {
            () = self.attempt.cancelled() => {}
            () = self.session.ended.cancelled() => {}
            () = Clock::Boot.sleep_until(self.until) => {}
        }
    }
}

impl Claim {
    pub(crate) fn new(
        store: &Arc<Store>,
        session: Arc<Session>,
        queue: Arc<str>,
        role: Role,
    ) -> Self {
        let slot = Arc::new(store.slots.take(&queue));
        let key = keys::key(&queue, session.lease, slot.number, role).into();
        let (store, user) = (store.clone(), Some(session.user()));
        let (marked, stake, header) = (false, Stake::Nothing, Header::default());
        Self { store, session, queue, key, slot, user, marked, stake, header, floor: 0 }
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
        began: Instant,
    ) -> Result<Result<Entered, Vec<Place>>, Failure> {
        let (queue, key) = (self.queue.clone(), self.key.clone());
        let lease = self.session.lease;
        let value = self.is_candidate().then(|| request.value.as_deref().unwrap_or_default());
        let note = |terms: Terms<'_>| note::note(&request.holder, attempt.id(), terms.floor.1);
        let entry = NewEntry { key: &key, lease, note: b"", value };
        if request.wait == Wait::Try {
            let alone = request.kind == queue::Kind::Exclusive;
            let entered = self.send(request, attempt, began, |terms| match alone {
                true => {
                    let entry = NewEntry { note: &note(terms), ..entry };
                    requests::enter_if_free(&queue, entry, terms)
                }
                false => {
                    let entry = NewEntry { note: &note(terms), ..entry };
                    requests::enter_or_list(&queue, entry, terms)
                }
            });
            let entered = entered.await?;
            match &entered {
                // Beside others there is room: nobody is disturbed by an entry that stays.
                Err(found) if !alone && refusal(request, found).is_none() => {}
                _ => return Ok(entered),
            }
        }
        self.send(request, attempt, began, |terms| {
            requests::queue_up(&queue, NewEntry { note: &note(terms), ..entry }, terms)
        })
        .await
    }

    /// Sends the transaction that is to make the entry until there is an answer, or the caller that
    /// `began` then has waited for a TTL in vain.
    pub(crate) async fn send(
        &mut self,
        request: &Request,
        attempt: &Attempt,
        began: Instant,
        txn: impl Fn(Terms<'_>) -> Txn,
    ) -> Result<Result<Entered, Vec<Place>>, Failure> {
        let session = self.session.clone();
        let until = self.store.connection.patience(began, request.ttl);
        let patience = Patience { attempt, session: &session, until };
        if patience.is_over() {
            return Err(unsent("the caller's time was over before its turn came"));
        }
        let guarding = self.store.layout.epoch(session.lease);
        let mut pause = Pause::new();
        // The epoch that is over for this attempt.
        let mut over = None;
        loop {
            if let Some(over) = over.take().max(self.stake.late()) {
                Box::pin(self.begin_epoch(over, &guarding, &patience)).await?;
            }
            let epoch = match session.epoch.known() {
                Some(epoch) => epoch,
                None => Box::pin(or_over(session.epoch.current(), &patience)).await?,
            };
            let floor = self.store.floor.known();
            let guard = Guard { key: &guarding, epoch };
            let terms = Terms { guard, floor: (&self.store.floor.key, &floor) };
            let txn = txn(terms);
            let call = self.store.connection.call(|member| requests::send_txn(member, &txn));
            match patience.answer(call).await.and_then(|answer| requests::entered(answer, terms)) {
                Ok(Outcome::Entered(entered)) => {
                    self.floor = floor.above();
                    return Ok(Ok(self.entered(entered)));
                }
                Ok(Outcome::Found(found)) => {
                    self.floor = floor.above();
                    return Box::pin(self.found(found, &floor, &patience)).await;
                }
                Ok(Outcome::Over) => over = Some(epoch),
                Ok(Outcome::Raised(floor)) => drop(self.store.floor.learn(floor)),
                Err(failure) => {
                    self.failed(&failure, epoch);
                    if !failure.kind.is_passing() || patience.is_over() {
                        return Err(failure);
                    }
                    Box::pin(pause.wait()).await;
                }
            }
        }
    }

    pub(crate) fn set_stake(&mut self, stake: Stake) {
        self.session.estate.note(&self.key, stake);
        self.stake = stake;
    }

    fn entered(&mut self, entered: Entered) -> Entered {
        self.set_stake(Stake::Entry(entered.revision));
        self.header = entered.header;
        entered
    }

    fn failed(&mut self, failure: &Failure, epoch: i64) {
        // A session that has ended may have its lease for a while.
        let ended = failure.kind == Kind::LeaseGone && self.session.ended.is_cancelled();
        if ended || failure.kind.is_ambiguous() {
            self.set_stake(Stake::Doubtful(Some(epoch)));
        } else if failure.kind == Kind::LeaseGone {
            self.set_stake(Stake::Nothing);
        }
    }

    /// After this, nothing that was sent in an epoch up to this one does anything.
    async fn begin_epoch(
        &mut self,
        over: i64,
        guarding: &str,
        patience: &Patience<'_>,
    ) -> Result<(), Failure> {
        let Session { lease, epoch, .. } = &*self.session;
        let give_up = || patience.is_over();
        let raised = epoch.raise(over, &self.store.connection, guarding, *lease, give_up);
        or_over(raised, patience).await??;
        if epoch.was_deleted() {
            janitor::retire(&self.store, &self.session);
        }
        if let Stake::Doubtful(_) = self.stake {
            self.set_stake(Stake::Doubtful(None));
        }
        Ok(())
    }

    /// The transaction found others there, or the entry that an earlier sending had made: from another
    /// floor if that was raised since. What is behind the entry counts from the earlier one, too, so
    /// its token must not be counted from this one.
    async fn found(
        &mut self,
        found: Vec<Place>,
        floor: &Record,
        patience: &Patience<'_>,
    ) -> Result<Result<Entered, Vec<Place>>, Failure> {
        if let Stake::Doubtful(_) = self.stake {
            let Self { store, queue, key, .. } = &*self;
            let give_up = || patience.is_over();
            let standing = reads::standing(&store.connection, queue, key, give_up);
            match or_over(standing, patience).await?? {
                Some(entered) => {
                    let entered = self.entered(entered);
                    if floor.is_after(entered.revision) {
                        return Err(Failure::new(Kind::Overtaken, "the token floor was raised"));
                    }
                    return Ok(Ok(entered));
                }
                None => self.set_stake(Stake::Nothing),
            }
        }
        Ok(Err(found))
    }

    /// Waits until the entries before this one leave room for it. Answers whether it came to that.
    async fn wait(&self, entered: Entered, request: &Request, attempt: &Attempt) -> Result<bool> {
        let Entered { revision, before, .. } = entered;
        attempt.queued(&request.name, Some(before.len()));
        let own = Place { revision, key: self.key.as_bytes().to_vec(), kind: request.kind };
        let told = self.store.watcher.enter(&self.queue, attempt.id(), own, before, request.ttl);
        let turn = tokio::select! {
            biased;
            () = attempt.cancelled() => return Ok(false),
            () = self.session.ended.cancelled() => None,
            turn = told => turn.ok(),
        };
        match turn {
            Some(Turn::Yours) => Ok(true),
            Some(Turn::Gone) => Err(vanished()),
            Some(Turn::Denied(why)) => {
                Err(Failure::new(Kind::Denied, &*why).into_error("acquire", false))
            }
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

    /// Removes the entry: it is gone when this returns `Ok`, or goes with its session, and nothing
    /// makes it again.
    ///
    /// # Errors
    ///
    /// As [`janitor::remove`].
    pub(crate) async fn remove(&mut self, then: Option<Leftover>) -> Result<()> {
        match self.leftover(then) {
            Some(leftover) => janitor::remove(&self.store, &self.session, leftover).await,
            None => Ok(()),
        }
    }

    /// Removes the entry in the background.
    pub(crate) fn abandon(&mut self, then: Option<Leftover>) {
        if let Some(leftover) = self.leftover(then) {
            janitor::leave(&self.store, &self.session, leftover);
        }
    }

    /// The entry, with this create revision, is another's from now on. Its key is not used again as
    /// long as it stands.
    pub(crate) fn hand_over(&mut self, revision: i64) {
        drop(self.user.take());
        self.set_stake(Stake::Nothing);
        if kept::keep(&self.session, self.key.clone(), revision, self.slot.clone()) {
            let (session, store) = (self.session.clone(), self.store.clone());
            store.runtime.clone().spawn(async move {
                kept::look(&session, &store.connection).await;
            });
        }
    }

    /// What there is to remove. Whoever asks removes it: the attempt is over.
    pub(crate) fn leftover(&mut self, then: Option<Leftover>) -> Option<Leftover> {
        drop(self.user.take());
        let stake = std::mem::replace(&mut self.stake, Stake::Nothing);
        let (key, _slot) = (self.key.clone(), self.slot.clone());
        let (belongs, then) = (self.marked || self.is_candidate(), then.map(Box::new));
        (stake != Stake::Nothing).then_some(Leftover { key, _slot, stake, belongs, then })
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

/// Waits for something as long as an attempt has patience.
async fn or_over<T>(what: impl Future<Output = T>, patience: &Patience<'_>) -> Result<T, Failure> {
    tokio::select! {
        biased;
        done = what => Ok(done),
        () = patience.over() => {
            Err(Failure::new(Kind::Refused, "an earlier request of the session was not answered"))
        }
    }
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
    let (mut taken, began) = (Vec::new(), Clock::Boot.now());
    let until = || store.connection.patience(began, request.ttl);
    loop {
        let session = store.sessions.get(request.ttl, attempt, began).await?;
        let turn = store.connection.turn(request.wait, attempt, until).await;
        let turn = turn.map_err(|failure| failure.into_error("acquire", false))?;
        if !session.is_live() || session.is_retired() {
            continue;
        }
        let mut claim = Claim::new(store, session.clone(), queue.clone(), role);
        let asked = Clock::Boot.now();
        let entered = claim.enter(request, attempt, began).await;
        drop(turn);
        let error = match entered {
            Ok(Ok(entered)) => match claim.settle(entered, request, attempt, asked).await {
                Ok(lease) => return Ok(lease),
                Err((claim, error)) => {
                    if let Stake::Entry(revision) = claim.stake {
                        store.watcher.names().leave(&claim.queue, revision);
                    }
                    return Err(Box::pin(give_up(claim, attempt, error)).await);
                }
            },
            Ok(Err(found)) if request.wait == Wait::Try => {
                refusal(request, &found).unwrap_or_else(|| contended(request))
            }
            // Somebody else has made the key. This attempt takes the next one.
            Ok(Err(_)) => {
                taken.push(claim);
                continue;
            }
            Err(failure) if failure.kind == Kind::Overtaken => {
                claim.remove(None).await?;
                continue;
            }
            // The lease had died before it was used here, or takes with it what was made: begin again.
            Err(failure) if failure.kind == Kind::LeaseGone => {
                store.sessions.gone_unless_ended(&session);
                continue;
            }
            Err(failure) => failure.into_error("acquire", claim.stake != Stake::Nothing),
        };
        return Err(Box::pin(give_up(claim, attempt, error)).await);
    }
}

/// Removes what an attempt left: at once if its caller has left and only this is left to do, else
/// in the background.
pub(crate) async fn give_up(mut claim: Claim, attempt: &Attempt, error: Error) -> Error {
    if attempt.is_cancelled() {
        // The janitor or the session's end removes it otherwise.
        drop(claim.remove(None).await);
    } else {
        claim.abandon(None);
    }
    error
}
