//! One attempt, from the request to the grant. In the words of the functions below:
//!
//! ```text
//! acquire:
//!   session = sessions.get            one etcd lease with a key, for all locks with this TTL
//!   enter:
//!     send one transaction:
//!       if the session's key has its epoch, and the entry's key is free
//!          (a try: the queue is empty)
//!       then list the queue (an exclusive attempt: its last entries), and put the entry with the
//!            session's lease
//!       else read the session's key
//!     and again until it is answered, or the caller's time is over:
//!       no answer: it may have made the entry, or may still (Stake::Doubtful)
//!                                    begin_epoch: write the session's key. Then that request does
//!                                    nothing, however late it arrives. Send again
//!       another epoch                begin_epoch, send again
//!       no key of the session        Outdated: remove what was made; a new session
//!       the session ends             a new session
//!       the entry's key is not free  found: if an earlier sending was not answered, read the key;
//!                                    its note says whose entry it is
//!         this attempt's             Entered: that sending made it
//!         another's                  Taken: enter with the next key (a try: it is contended)
//!       the time is over, or the     give_up: the janitor ends the epoch, reads the key, and
//!       caller has left              removes the entry if it is this attempt's
//!   settle:
//!     no entry before it in the way  it holds the lock
//!     else wait                      the watcher tells: Yours, or Gone, or Denied
//!   the token is the create revision of the entry, plus the session's token floor
//! held:
//!   the session's keep-alives renew it; a watch of its key tells if it is deleted
//! release:
//!   delete the entry if it has its create revision; no answer: send again until it is answered,
//!   refused (the janitor goes on), or the session has ended and takes the entry along
//! ```

pub(crate) mod convert;
pub(crate) mod detach;
mod enter;
mod mark;
pub(crate) mod set;

use std::sync::Arc;

use lock_core::{
    Attempt, Clock, Error, Instant, Kind, Request, Result, Term, Wait, keep::errors::late,
    validity::safe_until,
};

use crate::{
    acquire::enter::{Attempted, contended, refusal},
    error::{Failure, FailureKind, STORE},
    layout::{keys::Role, listing::QueueEntry},
    lease::EtcdLease,
    queue::name::WaitEnd,
    session::{
        Stake,
        attempt::{Hold, OwnEntry, give_up, vanished},
        store::Store,
    },
    wire::requests::Entered,
};

/// One attempt, from the request to the grant.
pub(crate) async fn acquire(
    store: &Arc<Store>,
    request: &Request,
    attempt: &Attempt,
) -> Result<EtcdLease> {
    let queue = store.layout.queue(&request.name)?;
    let role = match (&request.value, request.kind) {
        (Some(_), Kind::Exclusive) => Role::Candidate,
        (_, kind) => Role::Ours(kind),
    };
    let (mut taken, began) = (Vec::new(), Clock::Boot.now());
    loop {
        let (session, room) = store.sessions.get(request.ttl, request.wait, attempt, began).await?;
        let mut entry = OwnEntry::new(store, session, queue.clone(), role, attempt.id());
        let asked = Clock::Boot.now();
        let entered = entry.enter(request, attempt, began).await;
        drop(room);
        let error = match entered {
            Ok(Attempted::Entered(entered)) => {
                match entry.settle(entered, request, attempt, asked).await {
                    Ok(lease) => return Ok(lease),
                    Err((entry, error)) => {
                        if let Stake::Entry(revision) = entry.stake {
                            store.watcher.names().leave(&entry.queue, revision, &entry.key);
                        }
                        return Err(Box::pin(give_up(entry, attempt, error)).await);
                    }
                }
            }
            Ok(Attempted::Taken(found)) if request.wait == Wait::Try => {
                refusal(request, &found).unwrap_or_else(|| contended(request))
            }
            Ok(Attempted::Taken(_)) => {
                taken.push(entry);
                continue;
            }
            Err(failure) if failure.kind == FailureKind::Outdated => {
                entry.janitor().retire();
                entry.remove().await?;
                continue;
            }
            // The end of the session takes the new entry with it.
            Err(failure) if failure.kind == FailureKind::SessionEnded => continue,
            Err(failure) => failure.into_error("acquire", entry.stake != Stake::Nothing),
        };
        return Err(Box::pin(give_up(entry, attempt, error)).await);
    }
}

impl OwnEntry {
    /// Waits until the entries before this one leave room for it.
    async fn wait(&self, entered: Entered, request: &Request, attempt: &Attempt) -> Result<()> {
        let Entered { revision, before, .. } = entered;
        attempt.queued(&request.name, before.count);
        let own = QueueEntry { revision, key: self.key.as_bytes().to_vec(), kind: request.kind };
        let told =
            self.store.watcher.names().enter(&self.queue, attempt.id(), own, before, request.ttl);
        let end = tokio::select! {
            biased;
            () = attempt.cancelled() => return Err(contended(request)),
            () = self.session.ended.cancelled() => None,
            end = told => end.ok(),
        };
        match end {
            Some(WaitEnd::Yours) => Ok(()),
            Some(WaitEnd::Gone) if self.session.is_live() => Err(vanished()),
            // The deletion may arrive before the news that the lease has ended.
            Some(WaitEnd::Gone) if !self.session.ended.is_cancelled() => Err(late(STORE)),
            Some(WaitEnd::Denied(why)) => {
                Err(Failure::new(FailureKind::Denied, &*why).into_error("acquire", false))
            }
            Some(WaitEnd::Gone) | None => Err(self.session_ended()),
        }
    }

    /// Waits for the lock, if it must, and takes it. Returns the entry if it gets no lock.
    pub(crate) async fn settle(
        self,
        entered: Entered,
        request: &Request,
        attempt: &Attempt,
        asked: Instant,
    ) -> Result<EtcdLease, (Self, Error)> {
        let (revision, before) = (entered.revision, &entered.before);
        let refusal = match before.more {
            // What is known of the queue admits nothing.
            true => Some(contended(request)),
            false => refusal(request, &before.entries),
        };
        let waits = match refusal {
            None => false,
            Some(Error::Contended { .. }) if request.wait == Wait::Queue => true,
            Some(error) => return Err((self, error)),
        };
        if waits && let Err(error) = Box::pin(self.wait(entered, request, attempt)).await {
            return Err((self, error));
        }
        let granted_at = if waits { Clock::Boot.now() } else { asked };
        let cap = match request.term {
            Term::Fixed => safe_until(granted_at, request.ttl),
            _ => Instant::NEVER,
        };
        let Some(validity) = self.session.grant(&request.name, attempt.id(), cap) else {
            let error = self.session_ended();
            return Err((self, error));
        };
        if waits && !self.store.watcher.names().hold(&self.queue, revision, &validity) {
            self.session.unhold(attempt.id());
            return Err((self, vanished()));
        }
        let hold = Hold::new(self, revision);
        if !waits {
            hold.watch(&validity);
        }
        Ok(EtcdLease::new(hold, request, attempt.id(), validity))
    }
}
