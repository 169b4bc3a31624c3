//! What a session has in the store, for the day on which etcd does not end its lease.
//!
//! The end of a lease takes all of its keys with it, and etcd refuses it if the login may not write one
//! of them any more. The others are then removed key by key, so that nobody waits for them for a TTL.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{
    acquire::Stake,
    error::{Failure, Kind},
    session::Session,
    wire::{connection::Connection, reads, removals},
};

/// How many entries are removed in one transaction; etcd allows 128 operations.
const AT_ONCE: usize = 50;

/// The entries of one session by their keys, with their create revisions as far as they are known.
#[derive(Debug, Default)]
pub(crate) struct Estate(Mutex<HashMap<Arc<str>, Option<i64>>>);

/// An entry that stands: its key and its create revision.
type Entry = (Arc<str>, i64);

impl Estate {
    fn entries(&self) -> MutexGuard<'_, HashMap<Arc<str>, Option<i64>>> {
        // Nothing panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What an attempt may have under its key from now on.
    pub(crate) fn note(&self, key: &Arc<str>, stake: Stake) {
        match stake {
            Stake::Nothing => self.entries().remove(key),
            Stake::Doubtful(_) => self.entries().insert(key.clone(), None),
            Stake::Entry(revision) => self.entries().insert(key.clone(), Some(revision)),
        };
    }

    fn all(&self) -> Vec<(Arc<str>, Option<i64>)> {
        self.entries().iter().map(|(key, revision)| (key.clone(), *revision)).collect()
    }
}

/// Removes the entries of a session that has ended, as far as etcd lets the login do so.
///
/// # Errors
///
/// Why one of them was not removed.
pub(crate) async fn remove(connection: &Connection, session: &Session) -> Result<(), Failure> {
    let (mut entries, mut refused) = (Vec::new(), Ok(()));
    for (key, revision) in session.estate.all() {
        let found = match revision {
            Some(revision) => Ok(Some(revision)),
            None => find(connection, session, &key).await,
        };
        match found {
            Ok(found) => entries.extend(found.map(|revision| (key, revision))),
            Err(failure) => refused = Err(failure),
        }
    }
    let mut batches: Vec<Vec<Entry>> = entries.chunks(AT_ONCE).map(<[_]>::to_vec).collect();
    while let Some(mut batch) = batches.pop() {
        match delete(connection, session, &batch).await {
            // One that is refused must not keep the others.
            Err(failure) if failure.kind == Kind::Denied && batch.len() > 1 => {
                let rest = batch.split_off(batch.len() / 2);
                batches.extend([batch, rest]);
            }
            Err(failure) => refused = Err(failure),
            Ok(()) => {}
        }
    }
    refused
}

async fn find(
    connection: &Connection,
    session: &Session,
    key: &str,
) -> Result<Option<i64>, Failure> {
    let found = reads::created(connection, &[key], || session.is_over()).await?;
    Ok(found.into_iter().next().flatten())
}

async fn delete(
    connection: &Connection,
    session: &Session,
    entries: &[Entry],
) -> Result<(), Failure> {
    // What the end of the lease would take, and nothing else: the answer that tells of a lock that
    // was left may be on its way.
    let remove = |(key, revision): &Entry| removals::remove_of(session.lease, key, *revision);
    let removals = entries.iter().map(remove);
    removals::remove_all(connection, removals.collect(), || session.is_over()).await?;
    entries.iter().for_each(|(key, _)| session.estate.note(key, Stake::Nothing));
    Ok(())
}

#[cfg(test)]
mod tests {
    use etcd_client::{Client, Txn};

    use super::*;
    use crate::wire::{answer, requests};

    #[tokio::test]
    async fn an_entry_that_lives_by_another_lease_is_no_part_of_the_estate() {
        let etcd = lock_lab::Etcd::builder().in_memory().start().await.unwrap();
        let mut client = Client::connect([etcd.addr().to_string()], None).await.unwrap();
        let (own, other) = (etcd.grant(60).await.unwrap(), etcd.grant(60).await.unwrap());
        let key = "job/1f.0";
        let write = |lease| Txn::new().and_then([requests::put(key, lease, b"")]);
        let revision = answer::revision(&client.txn(write(own)).await.unwrap()).unwrap();
        client.txn(write(other)).await.unwrap();
        let remove = |lease| removals::remove_of(lease, key, revision);
        assert!(!client.txn(remove(own)).await.unwrap().succeeded());
        assert_eq!(etcd.keys().await.unwrap(), [key.as_bytes()]);
        client.txn(write(own)).await.unwrap();
        assert!(client.txn(remove(own)).await.unwrap().succeeded());
        assert!(etcd.keys().await.unwrap().is_empty());
    }
}
