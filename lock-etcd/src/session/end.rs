//! The end of a session's lease, and of its entries if etcd does not end the lease.

use std::sync::Arc;

use lock_core::Clock;

use crate::{
    error::{Failure, FailureKind},
    session::{Session, Stake},
    wire::{
        connection::Connection,
        leases, reads,
        removals::{self, Done, in_batches},
    },
};

/// An entry that stands: its key and its create revision.
type Entry = (Arc<str>, i64);

/// Ends the lease of a session that has ended. If etcd refuses because the login may not write one
/// of its keys any more, the others are removed.
pub(super) async fn revoke(connection: &Connection, session: &Session) -> Result<(), Failure> {
    let over = || session.is_over();
    let revoke = || leases::revoke(connection, session.lease, &over);
    match revoke().await {
        Err(failure) if failure.kind == FailureKind::Denied => {
            remove(connection, session).await?;
            revoke().await?;
        }
        revoked => revoked?,
    }
    session.set_gone();
    Ok(())
}

/// Same as [`revoke`], and again with each new login, as long as etcd refuses and the lease may
/// still stand.
pub(super) async fn revoke_in_time(connection: &Connection, session: &Session) {
    let mut changes = connection.changes();
    loop {
        match revoke(connection, session).await {
            Err(failure) if failure.kind == FailureKind::Denied => {}
            _ => return,
        }
        tokio::select! {
            _ = changes.changed() => {}
            () = connection.closed.cancelled() => return,
            () = Clock::Boot.sleep_until(session.over_at()) => return,
        }
    }
}

/// Removes the entries of a session that has ended, as far as etcd lets the login do so.
/// Returns why one of them was not removed.
async fn remove(connection: &Connection, session: &Session) -> Result<(), Failure> {
    let (entries, unknown) = standing(connection, session).await;
    let (_, refused) = in_batches(entries, |batch| delete(connection, session, batch)).await;
    refused.and(unknown)
}

/// Returns the entries that stand, and why some of the others are unknown.
async fn standing(connection: &Connection, session: &Session) -> (Vec<Entry>, Result<(), Failure>) {
    let (mut entries, mut unknown) = (Vec::new(), Ok(()));
    for (key, revision) in session.entries.all() {
        let found = match revision {
            Some(revision) => Ok(Some(revision)),
            None => reads::created(connection, &key, &|| session.is_over()).await,
        };
        match found {
            Ok(found) => entries.extend(found.map(|at| (key, at))),
            Err(failure) => unknown = Err(failure),
        }
    }
    (entries, unknown)
}

async fn delete(connection: &Connection, session: &Session, entries: Vec<Entry>) -> Done<Entry> {
    // Only the entries that the end of the lease would take: the answer that reports a left lock
    // may be on its way.
    let remove = |(key, revision): &Entry| removals::remove_of(session.lease, key, *revision);
    let removals = entries.iter().map(remove).collect();
    match removals::remove_all(connection, removals, &|| session.is_over()).await {
        Err(failure) => return Err((entries, failure)),
        Ok(_) => entries.iter().for_each(|(key, _)| session.entries.note(key, Stake::Nothing)),
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use etcd_client::{Client, Txn};

    use super::*;
    use crate::wire::requests;

    #[tokio::test]
    async fn an_entry_with_another_lease_is_not_removed_with_the_session() {
        let etcd = lock_lab::Etcd::builder().in_memory().start().await.unwrap();
        let mut client = Client::connect([etcd.addr().to_string()], None).await.unwrap();
        let (own, other) = (etcd.grant(60).await.unwrap(), etcd.grant(60).await.unwrap());
        let key = "job/1f.0";
        let write = |lease| Txn::new().and_then([requests::put(key, lease, b"")]);
        let revision = requests::revision(client.txn(write(own)).await.unwrap().header()).unwrap();
        client.txn(write(other)).await.unwrap();
        let remove = |lease| removals::remove_of(lease, key, revision);
        assert!(!client.txn(remove(own)).await.unwrap().succeeded());
        assert_eq!(etcd.keys().await.unwrap(), [key.as_bytes()]);
        client.txn(write(own)).await.unwrap();
        assert!(client.txn(remove(own)).await.unwrap().succeeded());
        assert!(etcd.keys().await.unwrap().is_empty());
    }
}
