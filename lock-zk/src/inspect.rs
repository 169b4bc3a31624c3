//! Who stands in a queue.

use std::time::{Duration, UNIX_EPOCH};

use futures_util::future::join_all;
use lock_core::{Entry, FencingToken, Holder, Kind, Result};
use zookeeper_client::{Error as ZkError, Stat};

use crate::{
    child, error,
    note::{Became, Note},
    queue,
    session::Session,
};

/// Beyond this place only the attempts are told, not what they say about themselves.
const MOST_NOTES: usize = 256;

/// Holders and waiters of a lock's directory, the holders first. None has a `ttl_left`: a node lives as
/// long as its session, and ZooKeeper tells no client how long another's session still does.
pub(crate) async fn inspect(session: &Session, directory: &str) -> Result<Vec<Entry>> {
    let names = queue::in_order(session.list(directory).await?);
    let exchange = session.begin()?;
    let exchange = &exchange;
    let notes = names
        .iter()
        .take(MOST_NOTES)
        .map(|name| async move { exchange.data(&format!("{directory}/{name}")).await });
    let mut notes = join_all(notes).await.into_iter();
    let mut entries = Vec::with_capacity(names.len());
    for name in &names {
        match notes.next() {
            // It has gone meanwhile.
            Some(Err(ZkError::NoNode)) => {}
            Some(Err(error)) => return Err(error::read_failed("inspect", error)),
            Some(Ok((note, stat))) => entries.push(read(name, &note, &stat)),
            None => {
                let entry = Entry::new(child::attempt(name), Holder::default());
                entries.push(entry.with_kind(child::kind(name)));
            }
        }
    }
    Entry::judge(&mut entries);
    Ok(entries)
}

/// Curator names its nodes as we do; only the note tells them apart.
pub(crate) fn read(name: &str, note: &[u8], stat: &Stat) -> Entry {
    let Some(note) = Note::read(note) else {
        return Entry::new(None, Holder::default()).with_kind(child::kind(name));
    };
    let kind = match note.became {
        Some(Became::Shared) => Kind::Shared,
        _ => child::kind(name),
    };
    let since = UNIX_EPOCH + Duration::from_millis(note.since);
    let token = FencingToken::new(stat.czxid.unsigned_abs());
    let holder = Holder::new(Some(note.holder), Some(since), Some(token));
    Entry::new(note.attempt.or_else(|| child::attempt(name)), holder).with_kind(kind)
}
