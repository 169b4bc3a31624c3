//! Who stands in a queue.

use std::time::{Duration, UNIX_EPOCH};

use futures_util::future::join_all;
use lock_core::{Entry, FencingToken, Holder, Result};
use serde::Deserialize;
use zookeeper_client::{Error as ZkError, Stat};

use crate::{error, queue, session::Session};

/// Beyond this place only the attempts are told, not what they say about themselves.
const MOST_NOTES: usize = 256;

#[derive(Deserialize)]
struct Note {
    holder: String,
    since: u64,
}

/// Holder and waiters of a lock's directory, the holder first.
pub(crate) async fn inspect(session: &Session, directory: &str) -> Result<Vec<Entry>> {
    let names = queue::in_order(session.list(directory).await?);
    let exchange = session.begin()?;
    let notes = names.iter().take(MOST_NOTES).map(|name| {
        let path = format!("{directory}/{name}");
        exchange.answer(exchange.client.get_data(&path))
    });
    let mut notes = join_all(notes).await.into_iter();
    let mut entries = Vec::with_capacity(names.len());
    for name in &names {
        match notes.next() {
            // It has gone meanwhile.
            Some(Err(ZkError::NoNode)) => {}
            Some(Err(error)) => return Err(error::read_failed("inspect", error)),
            Some(Ok((note, stat))) => entries.push(read(name, &note, &stat)),
            None => entries.push(Entry::new(queue::attempt(name), Holder::default())),
        }
    }
    Ok(entries)
}

/// Curator names its nodes as we do; only the note tells them apart.
fn read(name: &str, note: &[u8], stat: &Stat) -> Entry {
    let Ok(note) = serde_json::from_slice::<Note>(note) else {
        return Entry::new(None, Holder::default());
    };
    let since = UNIX_EPOCH + Duration::from_millis(note.since);
    let token = FencingToken::new(stat.czxid.unsigned_abs());
    Entry::new(queue::attempt(name), Holder::new(Some(note.holder), Some(since), Some(token)))
}
