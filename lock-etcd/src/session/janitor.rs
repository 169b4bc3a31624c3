//! Removes what attempts leave behind.
//!
//! A removal is sent by the one that wants it. What is left after that, because etcd refused it or
//! there is nobody to wait for it, is the session's janitor's: one task that removes what there is
//! in few requests, tries again what was refused as long as the session lives, and stops with it.
//! The end of a session removes its entries without any of this.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use lock_core::{Clock, Instant, Result};
use tokio::time::sleep;

use crate::{
    error::{Failure, FailureKind},
    layout::keys::queue_of,
    session::{
        Session,
        leftover::{Leftover, Stake},
        store::Store,
    },
    wire::{connection::Connection, reads, removals},
};

/// How many entries are removed in one transaction; etcd allows 128 operations.
const AT_ONCE: usize = 50;

/// The pauses before what was refused is tried again: the first one, doubled up to the last.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// Removes a leftover: nothing of it stands when this returns `Ok`, and nothing makes it again. A
/// session that has ended takes its entries with it, so nothing is sent then.
///
/// # Errors
///
/// What etcd said if it refuses. The janitor tries again, and no attempt begins in the session any
/// more.
pub(crate) async fn remove(
    store: &Arc<Store>,
    session: &Arc<Session>,
    mut leftover: Leftover,
) -> Result<()> {
    loop {
        let removed = clean(store, session, std::slice::from_mut(&mut leftover)).await;
        match (removed, leftover.then.take()) {
            (Ok(()), Some(next)) => leftover = *next,
            (Ok(()), None) => return Ok(()),
            (Err(_), _) if session.ended.is_cancelled() => return Ok(()),
            (Err(failure), then) => {
                store.sessions.retire(session);
                leave(store, session, Leftover { then, ..leftover });
                return Err(failure.into_error("release", true));
            }
        }
    }
}

/// Leaves a leftover to the janitor.
pub(crate) fn leave(store: &Arc<Store>, session: &Arc<Session>, leftover: Leftover) {
    session.todo().leftovers.push(leftover);
    wake(store, session);
}

/// No attempt begins in this session any more, and it ends with the last one that lives by it.
pub(crate) fn retire(store: &Arc<Store>, session: &Arc<Session>) {
    store.sessions.retire(session);
    wake(store, session);
}

fn wake(store: &Arc<Store>, session: &Arc<Session>) {
    let mut todo = session.todo();
    if !std::mem::replace(&mut todo.running, true) {
        store.runtime.spawn(run(store.clone(), session.clone()));
    } else {
        session.for_janitor.notify_one();
    }
}

async fn run(store: Arc<Store>, session: Arc<Session>) {
    let mut refused = Refused::default();
    while !session.ended.is_cancelled() {
        let todo = std::mem::take(&mut session.todo().leftovers);
        let mut new = remove_all(&store, &session, todo).await;
        if let Some(old) = refused.due(Clock::Boot.now()) {
            new.extend(one_by_one(&store, &session, old).await);
        }
        refused.add(new, Clock::Boot.now());
        if !refused.leftovers.is_empty() {
            store.sessions.retire(&session);
        }
        if session.is_retired() {
            if session.is_unused() {
                return store.sessions.end_unused(&session);
            }
            tokio::select! {
                () = session.ended.cancelled() => {}
                () = session.for_janitor.notified() => {}
                () = sleep(refused.again.since(Clock::Boot.now()).min(PAUSES[1])) => {}
            }
        } else if session.todo().rest() {
            return;
        }
    }
    session.todo().leftovers.clear();
}

/// What etcd refused to remove. It is tried again in its own time, whatever else there is to do.
#[derive(Debug)]
struct Refused {
    leftovers: Vec<Leftover>,
    again: Instant,
    pause: Duration,
}

impl Default for Refused {
    fn default() -> Self {
        Self { leftovers: Vec::new(), again: Instant::NEVER, pause: PAUSES[0] }
    }
}

impl Refused {
    /// All of it if it is to be tried again now.
    fn due(&mut self, now: Instant) -> Option<Vec<Leftover>> {
        (now >= self.again).then(|| {
            self.again = Instant::NEVER;
            std::mem::take(&mut self.leftovers)
        })
    }

    /// This was refused just now.
    fn add(&mut self, leftovers: Vec<Leftover>, now: Instant) {
        self.leftovers.extend(leftovers);
        if self.leftovers.is_empty() {
            *self = Self::default();
        } else if self.again == Instant::NEVER {
            self.again = now + self.pause;
            self.pause = (self.pause * 2).min(PAUSES[1]);
        }
    }
}

/// Removes what it can, and returns what etcd refused to remove.
async fn remove_all(
    store: &Arc<Store>,
    session: &Arc<Session>,
    mut leftovers: Vec<Leftover>,
) -> Vec<Leftover> {
    let mut refused = Vec::new();
    while !leftovers.is_empty() && !session.ended.is_cancelled() {
        let mut batch = leftovers.split_off(leftovers.len().saturating_sub(AT_ONCE));
        if clean(store, session, &mut batch).await.is_ok() {
            leftovers
                .extend(batch.into_iter().filter_map(|leftover| leftover.then).map(|next| *next));
            continue;
        }
        // One that is refused must not keep the others.
        refused.extend(one_by_one(store, session, batch).await);
    }
    refused
}

/// Removes what it can, one after the other, and returns the rest: what is refused of a queue
/// speaks for all that comes after it in the same.
async fn one_by_one(
    store: &Arc<Store>,
    session: &Arc<Session>,
    leftovers: Vec<Leftover>,
) -> Vec<Leftover> {
    let mut queues: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for leftover in leftovers {
        let queue = queue_of(leftover.key.as_bytes()).to_vec();
        queues.entry(queue).or_default().push(leftover);
    }
    let mut refused = Vec::new();
    for (_, mut queue) in queues {
        while let Some(mut leftover) = queue.pop() {
            match clean(store, session, std::slice::from_mut(&mut leftover)).await {
                Ok(()) => queue.extend(leftover.then.map(|next| *next)),
                Err(_) => {
                    refused.push(leftover);
                    refused.append(&mut queue);
                }
            }
        }
    }
    refused
}

/// Removes all of these or fails, and then some may be gone.
async fn clean(
    store: &Arc<Store>,
    session: &Arc<Session>,
    leftovers: &mut [Leftover],
) -> Result<(), Failure> {
    let connection = &store.connection;
    let give_up = || session.ended.is_cancelled();
    if give_up() {
        return Ok(());
    }
    let late = leftovers.iter().filter_map(|leftover| leftover.stake.late()).max();
    if let Some(late) = late {
        let key = store.layout.epoch(session.lease);
        match session.epoch.raise(late, connection, &key, session.lease, give_up).await {
            Err(failure) if failure.kind == FailureKind::LeaseGone => {
                store.sessions.gone(session);
                return Ok(());
            }
            raised => raised?,
        }
        if session.epoch.was_deleted() {
            retire(store, session);
        }
    }
    find(connection, leftovers, give_up).await?;
    delete(connection, leftovers, give_up).await?;
    leftovers.iter().for_each(|leftover| session.entries.note(&leftover.key, Stake::Nothing));
    Ok(())
}

/// Finds out what there is of the doubtful ones. Nothing makes them any more.
async fn find(
    connection: &Connection,
    leftovers: &mut [Leftover],
    give_up: impl Fn() -> bool,
) -> Result<(), Failure> {
    let mut doubtful: Vec<_> = leftovers
        .iter_mut()
        .filter(|leftover| matches!(leftover.stake, Stake::Doubtful(_)))
        .collect();
    if doubtful.is_empty() {
        return Ok(());
    }
    let keys = doubtful.iter().map(|leftover| &*leftover.key).collect::<Vec<_>>();
    let found = reads::created(connection, &keys, give_up).await?;
    for (leftover, created) in doubtful.iter_mut().zip(found) {
        leftover.stake = created.map_or(Stake::Nothing, Stake::Entry);
    }
    Ok(())
}

async fn delete(
    connection: &Connection,
    leftovers: &[Leftover],
    give_up: impl Fn() -> bool,
) -> Result<(), Failure> {
    let entry = |leftover: &Leftover| match leftover.stake {
        Stake::Entry(revision) => Some((leftover.key.clone(), revision, leftover.belongs)),
        _ => None,
    };
    let entries: Vec<_> = leftovers.iter().filter_map(entry).collect();
    let removals = entries.iter().map(|(key, revision, _)| removals::remove(key, *revision));
    let removed = removals::remove_all(connection, removals.collect(), &give_up).await?;
    for ((key, revision, belongs), removed) in entries.iter().zip(removed) {
        // Somebody has deleted the entry, perhaps without what belongs to it.
        if *belongs && !removed {
            removals::remove_belongings(connection, key, *revision, &give_up).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::key_slots::Slots;

    fn leftover() -> Leftover {
        let slot = Arc::new(Arc::new(Slots::default()).take(&"a/".into()));
        let stake = Stake::Entry(1);
        Leftover { key: "a/1.0".into(), _slot: slot, stake, belongs: false, then: None }
    }

    #[test]
    fn what_is_refused_later_does_not_bring_the_earlier_ones_forward() {
        let now = Clock::Boot.now();
        let mut refused = Refused::default();
        refused.add(vec![leftover()], now);
        refused.add(vec![leftover()], now + PAUSES[0] / 2);
        assert!(refused.due(now + PAUSES[0] / 2).is_none());
        let both = refused.due(now + PAUSES[0]).unwrap();
        assert_eq!(both.len(), 2);
        refused.add(both, now + PAUSES[0]);
        assert!(refused.due(now + PAUSES[0] * 2).is_none(), "each pause is longer");
        assert!(refused.due(now + PAUSES[0] * 3).is_some());
        refused.add(Vec::new(), now);
        assert_eq!(refused.pause, PAUSES[0]);
    }
}
