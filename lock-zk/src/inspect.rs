//! Who stands in a queue.

use std::time::{Duration, UNIX_EPOCH};

use futures_util::future::try_join_all;
use lock_core::{Diagnosis, Entry, Holder, Kind, Result};
use uuid::Uuid;
use zookeeper_client::{Error as ZkError, Stat};

use crate::{
    error,
    layout::{
        child,
        note::{Became, Note},
    },
    queue::view,
    session::{Session, floor::Above},
    wire::turns::Turn,
};

/// Beyond this place only the attempts are told, not what they say about themselves.
const MOST_NOTES: usize = 256;

/// Holders and waiters of a lock's directory, the holders first. None has a `ttl_left`: a node
/// lives as long as its session, and ZooKeeper tells no client how long another's session still
/// does.
pub(crate) async fn inspect(session: &Session, directory: &str) -> Result<Vec<Entry>> {
    let names = view::in_order(session.list(directory, Turn::Look).await?);
    let notes = names.iter().take(MOST_NOTES).map(|name| async move {
        let exchange = session.begin_in_turn(Turn::Look).await?;
        Ok(exchange.data(&format!("{directory}/{name}")).await)
    });
    let mut notes = try_join_all(notes).await?.into_iter();
    let above = session.above().await?;
    let mut entries = Vec::with_capacity(names.len());
    let mut last = None;
    for name in &names {
        match notes.next() {
            // It has gone meanwhile.
            Some(Err(ZkError::NoNode)) => {}
            Some(Err(error)) => return Err(error::read_failed("inspect", error)),
            Some(Ok((note, stat))) => {
                entries.push(read(name, &note, &stat, above));
                last = Some(stat);
            }
            None => entries.push(unread(name)),
        }
    }
    Entry::judge(&mut entries);
    if let ([entry], Some(stat)) = (entries.as_mut_slice(), last)
        && came_last(session, directory, &stat).await?
    {
        entry.holder.granted_at = entry.holder.queued_at;
    }
    Ok(entries)
}

/// Whether nobody has come or gone since the only entry was made, so that it was granted at once.
/// ZooKeeper has no history, and when a node was deleted is written nowhere.
async fn came_last(session: &Session, directory: &str, only: &Stat) -> Result<bool> {
    let exchange = session.begin_in_turn(Turn::Look).await?;
    match exchange.stat(directory).await {
        Ok(stat) => Ok(stat.is_some_and(|stat| stat.pzxid == only.czxid)),
        Err(error) => Err(error::read_failed("inspect", error)),
    }
}

/// Who is in the way, and where these attempts stand: with one list, and the data of the first
/// node.
pub(crate) async fn diagnose(
    session: &Session,
    directory: &str,
    attempts: &[Uuid],
) -> Result<Diagnosis> {
    let names = view::in_order(session.list(directory, Turn::Look).await?);
    let mut entries: Vec<_> = names.iter().map(|name| unread(name)).collect();
    if let (Some(name), Some(entry)) = (names.first(), entries.first_mut()) {
        let exchange = session.begin_in_turn(Turn::Look).await?;
        // Only the first one can be something else than its name says: a writer that shares by now.
        if let Ok((note, stat)) = exchange.data(&format!("{directory}/{name}")).await {
            *entry = read(name, &note, &stat, session.above().await?);
        }
    }
    Entry::judge(&mut entries);
    Ok(Diagnosis::of(&entries, attempts))
}

/// An entry of which only the name is known.
fn unread(name: &str) -> Entry {
    Entry::new(child::attempt(name), Holder::default()).with_kind(child::kind(name))
}

/// Curator names its nodes as we do; only the note tells them apart.
pub(crate) fn read(name: &str, note: &[u8], stat: &Stat, above: Above) -> Entry {
    let Some(note) = Note::read(note) else {
        return Entry::new(None, Holder::default()).with_kind(child::kind(name));
    };
    let kind = match note.became {
        Some(Became::Shared) => Kind::Shared,
        _ => child::kind(name),
    };
    let since = UNIX_EPOCH.checked_add(Duration::from_millis(note.since));
    let token = above.token(stat);
    let granted = match note.became {
        // By the server's clock, how much later somebody wrote that it was admitted.
        Some(Became::Admitted) => u64::try_from(stat.mtime.saturating_sub(stat.ctime)).ok(),
        _ => None,
    };
    let granted = granted.and_then(|later| since?.checked_add(Duration::from_millis(later)));
    let holder = Holder::new(Some(note.holder), token).queued(since).granted(granted);
    Entry::new(note.attempt.or_else(|| child::attempt(name)), holder).with_kind(kind)
}
