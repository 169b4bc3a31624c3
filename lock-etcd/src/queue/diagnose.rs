//! The reason for a failed wait.

use etcd_client::{GetOptions, SortOrder, SortTarget, proto::PbKeyValue};
use lock_core::{Diagnosis, Holder, LockName, Result};
use uuid::Uuid;

use crate::{
    error::Failure,
    layout::{
        keys::{self, Role, role},
        listing::is_passed_on,
        note,
    },
    session::store::Store,
    wire::{
        connection::{Connection, Word},
        reads,
    },
};

/// How many of the first keys of a queue are read to find the first entry: marks and signals stand
/// among them.
const FIRST: i64 = 4;

/// Returns the first holder in line, by one read of its entry, and the places of the attempts as
/// far as this client knows them.
pub(crate) async fn diagnose(
    store: &Store,
    name: &LockName,
    attempts: &[Uuid],
) -> Result<Diagnosis> {
    let queue = store.layout.queue(name)?;
    let (first, places) = store.watcher.names().standing(&queue, attempts);
    let connection = &store.connection;
    let known = match first {
        Some(first) => known(connection, &queue, &first).await,
        None => Ok(None),
    };
    let holder = match known {
        // Nothing is known here, or the entry is gone.
        Ok(None) => first_of(connection, &queue).await,
        known => known,
    };
    let holder = holder.map_err(|failure| failure.into_error("inspect", false))?;
    Ok(Diagnosis::new(holder, places))
}

/// Returns the holder of this entry; `None` if it is gone.
async fn known(
    connection: &Connection,
    queue: &str,
    key: &[u8],
) -> Result<Option<Holder>, Failure> {
    let role = role(key);
    let key = match role {
        Role::Candidate => keys::note(&String::from_utf8_lossy(key)).into_bytes(),
        _ => key.to_owned(),
    };
    // From the member in use, here and below: this is for the text of an error, and may be old.
    let options = GetOptions::new().with_serializable();
    let found = reads::get(connection, Word::Member, &key, &options).await?;
    let Some(kv) = found.0.kvs.into_iter().next() else { return Ok(None) };
    let revision = match role {
        Role::Foreign => return Ok(Some(Holder::default())),
        // A note was written together with the entry.
        Role::Candidate => kv.mod_revision,
        _ => kv.create_revision,
    };
    let holder = note::holder(&kv.value, revision, is_passed_on(&role, &kv));
    let at_once = reads::entered_at_once(connection, queue, revision).await;
    let granted_at = holder.queued_at.filter(|_| at_once);
    Ok(Some(holder.granted(granted_at)))
}

/// Returns the holder of the first entry of a queue. etcd reads the whole queue for it, and sends
/// only the beginning.
async fn first_of(connection: &Connection, queue: &str) -> Result<Option<Holder>, Failure> {
    let options = GetOptions::new()
        .with_prefix()
        .with_keys_only()
        .with_sort(SortTarget::Create, SortOrder::Ascend)
        .with_limit(FIRST)
        .with_serializable();
    let first = reads::get(connection, Word::Member, queue.as_bytes(), &options).await?;
    let is_entry = |kv: &PbKeyValue| role(&kv.key).kind().is_some();
    let Some(first) = first.0.kvs.into_iter().find(is_entry) else { return Ok(None) };
    let nothing = || Some(Holder::default());
    Ok(known(connection, queue, &first.key).await?.or_else(nothing))
}
