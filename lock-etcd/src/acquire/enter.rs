//! The request that acquires: one transaction that makes an attempt's entry, sent until its result
//! is known.
//!
//! - If the key of the attempt is not there (a try: if no key of the queue is), and the session's
//!   epoch is the one that the client knows,
//! - then list the keys of the queue (not in a try; the last ones for an exclusive entry), and put
//!   the entry with the session's lease;
//! - else read the epoch.
//!
//! The revision of the put is the token, without the session's token floor. The lock is held if no
//! entry stands in the way. [`requests`] has the transaction in etcd's words.

use etcd_client::Txn;
use lock_core::{
    Attempt, Clock, Error, Instant, Request, Wait, limit_conflict,
    queue::{self, Verdict},
};

use crate::{
    error::{Failure, FailureKind},
    layout::{listing::QueueEntry, note},
    session::{Session, Stake, attempt::OwnEntry, key::GONE},
    wire::{
        connection::{BACKOFF, Word},
        lanes::unsent,
        reads,
        requests::{self, Entered, Guard, NewEntry, Outcome},
    },
};

/// How long an attempt continues without an answer.
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

    /// Waits for an answer, also if the caller has left: the answer tells what there is to remove.
    /// None counts after the end of the session, which the answer itself may have ended.
    async fn answer<T>(
        &self,
        call: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        let ended = &self.session.ended;
        let late =
            || Failure::new(FailureKind::SessionEnded, "the session ended before the answer");
        tokio::select! {
            biased;
            answer = call => answer.and_then(|answer| match ended.is_cancelled() {
                true => Err(late()),
                false => Ok(answer),
            }),
            () = ended.cancelled() => Err(late()),
            () = Clock::Boot.sleep_until(self.until) => {
                Err(Failure::new(FailureKind::Silent, "no answer before the caller's time was over"))
            }
        }
    }

    /// Waits for a request of the session. If the session ends meanwhile, the attempt may begin again
    /// in another one.
    async fn wait_for<T>(&self, what: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            done = what => return Ok(done),
            () = self.attempt.cancelled() => {}
            () = self.session.ended.cancelled() => {
                let ended = "the session ended before an earlier request of it was answered";
                return Err(Failure::new(FailureKind::SessionEnded, ended));
            }
            () = Clock::Boot.sleep_until(self.until) => {}
        }
        Err(unsent("an earlier request of the session was not answered"))
    }
}

/// The answer to an attempt.
pub(crate) enum Attempted {
    /// The entry stands.
    Entered(Entered),
    /// It does not stand, and no request makes it any more. Another attempt's entry has its key; for
    /// a try, these entries are in the queue.
    Taken(Vec<QueueEntry>),
}

impl OwnEntry {
    /// Makes the entry.
    pub(super) async fn enter(
        &mut self,
        request: &Request,
        attempt: &Attempt,
        began: Instant,
    ) -> Result<Attempted, Failure> {
        let (queue, key) = (self.queue.clone(), self.key.clone());
        let lease = self.session.lease;
        let value = self.is_candidate().then(|| request.value.as_deref().unwrap_or_default());
        let note = note::write(&request.holder, attempt.id(), &self.session.floor);
        let entry = NewEntry { key: &key, lease, note: &note, value };
        if request.wait == Wait::Try {
            let alone = request.kind == queue::Kind::Exclusive;
            let listed = (!alone).then_some(&*queue);
            let txn = |guard: Guard<'_>| requests::enter_if_free([(&*queue, entry)], listed, guard);
            let entered = self.send(request, attempt, began, txn).await?;
            match &entered {
                // There is room beside the others: an entry that stays delays none of them.
                Attempted::Taken(found) if !alone && refusal(request, found).is_none() => {}
                _ => return Ok(entered),
            }
        }
        let txn = |guard: Guard<'_>| requests::queue_up(&queue, request.kind, entry, guard);
        self.send(request, attempt, began, txn).await
    }

    /// Sends the transaction that makes the entry. Repeats it until there is an answer, or the
    /// caller that started at `began` has waited for a TTL.
    pub(crate) async fn send(
        &mut self,
        request: &Request,
        attempt: &Attempt,
        began: Instant,
        txn: impl Fn(Guard<'_>) -> Txn,
    ) -> Result<Attempted, Failure> {
        let session = self.session.clone();
        let until = self.store.connection.patience(began, request.ttl);
        let patience = Patience { attempt, session: &session, until };
        if patience.is_over() {
            return Err(unsent("the caller's time was over before its request was sent"));
        }
        let guarding = self.store.layout.session(session.lease);
        let mut pause = BACKOFF;
        // The epoch that is over for this attempt.
        let mut over = None;
        loop {
            if let Some(over) = over.take().max(self.stake.late()) {
                Box::pin(self.begin_epoch(over, &patience)).await?;
            }
            let epoch = match session.epoch.known() {
                Some(epoch) => epoch,
                None => Box::pin(patience.wait_for(session.epoch.current())).await?,
            };
            if epoch == GONE {
                return Err(Failure::new(FailureKind::Outdated, "the session's key is gone"));
            }
            let guard = Guard { key: &guarding, epoch };
            let txn = txn(guard);
            let call =
                self.store.connection.call(Word::Leader, |member| requests::send_txn(member, &txn));
            match patience.answer(call).await.and_then(|answer| requests::entered(answer, guard)) {
                Ok(Outcome::Entered(entered)) => return Ok(self.entered(entered)),
                Ok(Outcome::Found(found)) => {
                    return Box::pin(self.found(found, request.kind, &patience)).await;
                }
                Ok(Outcome::Over) => over = Some(epoch),
                Err(failure) => {
                    // A session that has ended may keep its lease for a while.
                    if failure.kind == FailureKind::SessionEnded || failure.kind.is_ambiguous() {
                        self.set_stake(Stake::Doubtful(Some(epoch)));
                    }
                    if !failure.kind.is_passing() || patience.is_over() {
                        return Err(failure);
                    }
                    Box::pin(pause.wait()).await;
                }
            }
        }
    }

    fn entered(&mut self, entered: Entered) -> Attempted {
        self.answered(Stake::Entry(entered.revision), entered.header);
        Attempted::Entered(entered)
    }

    /// Begins an epoch after `over`: nothing that was sent until then does anything after this.
    async fn begin_epoch(&mut self, over: i64, patience: &Patience<'_>) -> Result<(), Failure> {
        let give_up = || patience.is_over();
        patience.wait_for(self.janitor().end_epochs(over, &give_up)).await??;
        if let Stake::Doubtful(_) = self.stake {
            self.set_stake(Stake::Doubtful(None));
        }
        Ok(())
    }

    /// The transaction found other entries, or the one that an earlier sending had made.
    async fn found(
        &mut self,
        found: Vec<QueueEntry>,
        kind: queue::Kind,
        patience: &Patience<'_>,
    ) -> Result<Attempted, Failure> {
        let Stake::Doubtful(_) = self.stake else { return Ok(Attempted::Taken(found)) };
        let Self { store, queue, key, .. } = &*self;
        let give_up = || patience.is_over();
        let standing = async {
            let Some((revision, modified)) = self.find(&give_up).await? else { return Ok(None) };
            let connection = &store.connection;
            let found = reads::standing(connection, queue, kind, key, revision, &give_up).await;
            found.map(|entered| entered.map(|entered| (entered, modified)))
        };
        let standing = patience.wait_for(standing).await??;
        self.looked_up = true;
        let Some((entered, modified)) = standing else {
            self.set_stake(Stake::Nothing);
            return Ok(Attempted::Taken(found));
        };
        let entered = self.entered(entered);
        self.modified = modified;
        Ok(entered)
    }
}

/// The error of an attempt that is not to wait.
pub(super) fn contended(request: &Request) -> Error {
    Error::Contended { name: request.name.clone() }
}

/// Returns the error of an entry behind others that does not hold the lock yet, or never will;
/// `None` if it holds it.
pub(super) fn refusal(request: &Request, before: &[QueueEntry]) -> Option<Error> {
    let mut before: Vec<_> = before.iter().map(|entry| (entry.revision, entry.kind)).collect();
    // Lists are in the order of the keys, and the first one in line sets the number of permits.
    before.sort_unstable_by_key(|(revision, _)| *revision);
    let (kind, before) = (request.kind, before.into_iter().map(|(_, k)| k).collect::<Vec<_>>());
    match queue::other_limit(before.iter().copied(), kind) {
        Some(found) => Some(limit_conflict(request, found)),
        None => (queue::judge(&before, kind) != Verdict::Admitted).then(|| contended(request)),
    }
}
