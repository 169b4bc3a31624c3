//! Removes what attempts leave behind.
//!
//! The caller that wants a removal sends it. The session's janitor takes the rest: removals that
//! etcd refused, and those without a waiting caller. The janitor is one task. It removes leftovers
//! in few requests, tries again as long as the session lives, and stops with it. The end of a
//! session removes its entries without any of this.

use std::sync::Arc;

use futures_util::future::try_join_all;
use lock_core::{Clock, Instant, LossReason, Result};

use crate::{
    error::Failure,
    session::{Leftover, Session, Stake, key::GONE, store::Store},
    wire::{
        connection::{Connection, GiveUp},
        reads,
        removals::{self, Done, in_batches},
    },
};

/// Removes the leftovers of one session.
#[derive(Clone, Copy)]
pub(crate) struct Janitor<'a> {
    pub(crate) store: &'a Arc<Store>,
    pub(crate) session: &'a Arc<Session>,
}

impl Janitor<'_> {
    /// Removes a leftover. When this returns `Ok`, nothing of it stands, and nothing makes it
    /// again. A session that has ended takes its entries with it, so nothing is sent then.
    /// If etcd refuses, the janitor tries again, and no attempt begins in the session any more.
    pub(crate) async fn remove(self, leftover: Leftover) -> Result<()> {
        let (refused, why) = in_batches(vec![leftover], |batch| self.remove_batch(batch)).await;
        for leftover in refused {
            self.store.sessions.retire(self.session);
            self.leave(leftover);
        }
        why.map_err(|failure| failure.into_error("release", true))
    }

    /// Leaves a leftover to the janitor.
    pub(crate) fn leave(self, leftover: Leftover) {
        self.session.left.add(leftover);
        self.wake();
    }

    /// Retires the session, which ends with its last attempt.
    pub(crate) fn retire(self) {
        self.store.sessions.retire(self.session);
        self.wake();
    }

    fn wake(self) {
        self.session.left.ring();
        if self.session.left.start() {
            self.store.runtime.spawn(run(self.store.clone(), self.session.clone()));
        }
    }

    /// Removes all of these, and returns what to remove next. If it fails, some may be gone.
    async fn remove_batch(self, mut batch: Vec<Leftover>) -> Done<Leftover> {
        let cleaned = self.clean(&mut batch).await;
        match cleaned {
            _ if self.session.ended.is_cancelled() => Ok(Vec::new()),
            Ok(()) => {
                Ok(batch.into_iter().filter_map(|done| done.then).map(|next| *next).collect())
            }
            Err(failure) => Err((batch, failure)),
        }
    }

    async fn clean(self, leftovers: &mut [Leftover]) -> Result<(), Failure> {
        let (connection, session) = (&self.store.connection, self.session);
        let give_up = || session.ended.is_cancelled();
        if give_up() {
            return Ok(());
        }
        if let Some(late) = leftovers.iter().filter_map(|leftover| leftover.stake.late()).max() {
            self.end_epochs(late, &give_up).await?;
        }
        find(connection, leftovers, &give_up).await?;
        delete(connection, leftovers, &give_up).await?;
        leftovers.iter().for_each(|leftover| session.entries.note(&leftover.key, Stake::Nothing));
        Ok(())
    }

    /// Ends the epochs of a session up to `last`: nothing that was sent in them does anything after
    /// this. Retires the session if its key is gone.
    pub(crate) async fn end_epochs(self, last: i64, give_up: GiveUp<'_>) -> Result<(), Failure> {
        let Self { store, session } = self;
        let key = store.layout.session(session.lease);
        let raise = session.epoch.raise(last, &store.connection, &key, session.lease, give_up);
        if raise.await? == GONE {
            self.retire();
            // Its lease may be gone, too.
            session.hurry();
        }
        Ok(())
    }
}

async fn run(store: Arc<Store>, session: Arc<Session>) {
    let (janitor, left) = (Janitor { store: &store, session: &session }, &session.left);
    let mut changes = store.connection.changes();
    let mut due = left.take(Clock::Boot.now());
    while !session.ended.is_cancelled() {
        let leftovers = [due.new, due.again].concat();
        let (refused, _) = in_batches(leftovers, |batch| janitor.remove_batch(batch)).await;
        if !refused.is_empty() {
            store.sessions.retire(&session);
        }
        left.refused(refused, Clock::Boot.now());
        if session.is_retired() {
            if session.is_unused() {
                return store.sessions.end(&session, LossReason::SessionEnded);
            }
            tokio::select! {
                () = session.ended.cancelled() => {}
                () = left.wait() => {}
                // A new login may be allowed what the one before was not.
                _ = changes.changed() => {
                    due = left.take(Instant::NEVER);
                    // The pauses begin anew.
                    left.refused(Vec::new(), Clock::Boot.now());
                    continue;
                }
            }
        } else if left.rest() {
            return;
        }
        due = left.take(Clock::Boot.now());
    }
    left.clear();
}

/// Reads which of the doubtful ones stand. Nothing makes them any more.
async fn find(
    connection: &Connection,
    leftovers: &mut [Leftover],
    give_up: GiveUp<'_>,
) -> Result<(), Failure> {
    let mut doubtful: Vec<_> = leftovers
        .iter_mut()
        .filter(|leftover| matches!(leftover.stake, Stake::Doubtful(_)))
        .collect();
    if doubtful.is_empty() {
        return Ok(());
    }
    let find = |leftover: &&mut Leftover| {
        let (key, attempt) = (leftover.key.clone(), leftover.attempt);
        async move { reads::entry_of(connection, &key, attempt, give_up).await }
    };
    let found = try_join_all(doubtful.iter().map(find).collect::<Vec<_>>()).await?;
    for (leftover, found) in doubtful.iter_mut().zip(found) {
        leftover.stake = found.map_or(Stake::Nothing, |(created, _)| Stake::Entry(created));
    }
    Ok(())
}

async fn delete(
    connection: &Connection,
    leftovers: &[Leftover],
    give_up: GiveUp<'_>,
) -> Result<(), Failure> {
    let entry = |leftover: &Leftover| match leftover.stake {
        Stake::Entry(revision) => Some((leftover.key.clone(), revision, leftover.belongs)),
        _ => None,
    };
    let entries: Vec<_> = leftovers.iter().filter_map(entry).collect();
    let removals = entries.iter().map(|(key, revision, _)| removals::remove(key, *revision));
    let removed = removals::remove_all(connection, removals.collect(), give_up).await?;
    for ((key, revision, belongs), removed) in entries.iter().zip(removed) {
        // Another client has deleted the entry, perhaps without what belongs to it.
        if *belongs && !removed {
            removals::remove_belongings(connection, key, *revision, give_up).await?;
        }
    }
    Ok(())
}
