//! Removes what attempts leave behind.
//!
//! A removal is sent by the one that wants it. What is left after that, because etcd refused it or
//! there is nobody to wait for it, is the session's janitor's: one task that removes what there is in
//! few requests, tries again what was refused as long as the session lives, and stops with it. The
//! end of a session removes its entries without any of this.

use std::{sync::Arc, time::Duration};

use lock_core::Result;
use tokio::time::sleep;

use crate::{
    claim::Stake, connection::Connection, error::Failure, requests, session::Session, slots::Slot,
    store::Store,
};

/// How many entries are removed in one transaction; etcd allows 128 operations.
const AT_ONCE: usize = 50;

/// The pauses before what was refused is tried again: the first one, doubled up to the last.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];

/// What an attempt may have left in the store.
#[derive(Clone, Debug)]
pub(crate) struct Leftover {
    pub(crate) key: Arc<str>,
    /// The key is nobody else's until the leftover is gone.
    pub(crate) _slot: Arc<Slot>,
    pub(crate) stake: Stake,
    /// What belongs to the entry may stand beside it.
    pub(crate) belongs: bool,
    /// To be removed after this one: an upgrade without an answer may make it as long as this stands.
    pub(crate) then: Option<Box<Self>>,
}

/// What a session's janitor is to do.
#[derive(Debug, Default)]
pub(crate) struct Todo {
    leftovers: Vec<Leftover>,
    running: bool,
}

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
    let mut todo = session.todo();
    todo.leftovers.push(leftover);
    if !std::mem::replace(&mut todo.running, true) {
        store.runtime.spawn(run(store.clone(), session.clone()));
    } else {
        session.for_janitor.notify_one();
    }
}

async fn run(store: Arc<Store>, session: Arc<Session>) {
    let (mut refused, mut pause) = (Vec::new(), PAUSES[0]);
    while !session.ended.is_cancelled() {
        let mut todo = std::mem::take(&mut session.todo().leftovers);
        todo.append(&mut refused);
        refused = remove_all(&store, &session, todo).await;
        if !refused.is_empty() {
            store.sessions.retire(&session);
        }
        if session.is_retired() {
            if session.is_unused() {
                return store.sessions.end_unused(&session);
            }
            tokio::select! {
                () = session.ended.cancelled() => {}
                () = session.for_janitor.notified() => {}
                () = sleep(pause) => pause = (pause * 2).min(PAUSES[1]),
            }
        } else if session.todo().rest() {
            return;
        }
    }
    session.todo().leftovers.clear();
}

impl Todo {
    /// Whether there is nothing to do: the janitor does not run from then on.
    fn rest(&mut self) -> bool {
        self.running = !self.leftovers.is_empty();
        !self.running
    }
}

/// Removes what it can, and returns what etcd refused to remove.
async fn remove_all(
    store: &Store,
    session: &Session,
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
        for mut leftover in batch {
            match clean(store, session, std::slice::from_mut(&mut leftover)).await {
                Ok(()) => leftovers.extend(leftover.then.map(|next| *next)),
                Err(_) => refused.push(leftover),
            }
        }
    }
    refused
}

/// Removes all of these or fails, and then some may be gone.
async fn clean(
    store: &Store,
    session: &Session,
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
        session.epoch.raise(late, connection, &key, session.lease, give_up).await?;
    }
    find(connection, leftovers, give_up).await?;
    delete(connection, leftovers, give_up).await
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
    let found = requests::created(connection, &keys, give_up).await?;
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
    let removals = entries.iter().map(|(key, revision, _)| requests::remove(key, *revision));
    let removed = requests::remove_all(connection, removals.collect(), &give_up).await?;
    for ((key, revision, belongs), removed) in entries.iter().zip(removed) {
        // Somebody has deleted the entry, perhaps without what belongs to it.
        if *belongs && !removed {
            requests::remove_belongings(connection, key, *revision, &give_up).await?;
        }
    }
    Ok(())
}
