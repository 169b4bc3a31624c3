//! What operators do: which names are in use, and taking a lock away from whoever has it.

use std::collections::{BTreeSet, HashMap};

use futures_util::future::try_join_all;
use lock_core::{Clock, Entry, LockName, Result};
use uuid::Uuid;

use crate::{entry, error::Failure, layout::queue_of, reads, requests, store::Store};

/// Holders and waiters in order. How long a holder's lease lasts is known to etcd only.
pub(crate) async fn inspect(store: &Store, name: &LockName) -> Result<Vec<Entry>> {
    let (queue, connection) = (store.layout.queue(name)?, &store.connection);
    let failed = |failure: Failure| failure.into_error("inspect", false);
    let standing = reads::inspect(connection, &queue).await.map_err(failed)?;
    let mut entries: Vec<_> = standing.iter().map(entry::read).collect();
    Entry::judge(&mut entries);
    let held = entries.iter().zip(&standing).filter(|(entry, _)| entry.holds);
    let leases: BTreeSet<_> =
        held.map(|(_, standing)| standing.lease).filter(|id| *id != 0).collect();
    // Together: many readers are many leases, and whoever waited in vain asks this, too.
    let left = leases.iter().map(|lease| requests::ttl_left(connection, *lease));
    let left: HashMap<_, _> =
        leases.iter().zip(try_join_all(left).await.map_err(failed)?).collect();
    for (entry, standing) in entries.iter_mut().zip(&standing).filter(|(entry, _)| entry.holds) {
        entry.ttl_left = left.get(&standing.lease).copied().flatten();
    }
    Ok(entries)
}

/// The names that have an entry and start with `start`, in order.
pub(crate) async fn names(store: &Store, start: &str) -> Result<Vec<LockName>> {
    let mut names = BTreeSet::new();
    let Some((mut from, to)) = store.layout.names(start) else { return Ok(Vec::new()) };
    loop {
        let (places, next) = reads::page(&store.connection, &from, &to)
            .await
            .map_err(|failure| failure.into_error("names", false))?;
        let found = places.iter().filter_map(|place| store.layout.name(queue_of(&place.key)));
        names.extend(found.filter(|name| name.as_str().starts_with(start)));
        let Some(next) = next else { return Ok(names.into_iter().collect()) };
        from = next;
    }
}

/// Removes the entry of an attempt. Answers whether there was one.
pub(crate) async fn revoke(
    store: &Store,
    name: &LockName,
    attempt: Uuid,
    patience: std::time::Duration,
) -> Result<bool> {
    let queue = store.layout.queue(name)?;
    let until = Clock::Boot.now() + patience;
    let mut sent_in_doubt = false;
    // An upgrade gives an attempt another entry: it is looked for until it is gone.
    loop {
        let entries = reads::inspect(&store.connection, &queue)
            .await
            .map_err(|failure| failure.into_error("revoke", sent_in_doubt))?;
        let own = |entry: &crate::listing::Standing| entry::attempt(&entry.note) == Some(attempt);
        let Some(victim) = entries.into_iter().find(own) else { return Ok(sent_in_doubt) };
        let key = String::from_utf8_lossy(&victim.place.key);
        let txn = requests::remove(&key, victim.place.revision);
        let give_up = || Clock::Boot.now() >= until;
        let insisted =
            store.connection.insist(give_up, |member| requests::send_txn(member, &txn)).await;
        sent_in_doubt |= insisted.ambiguous;
        let removed =
            insisted.result.map_err(|failure| failure.into_error("revoke", sent_in_doubt))?;
        if removed.succeeded() {
            return Ok(true);
        }
    }
}
