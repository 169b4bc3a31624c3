//! From the children of a lock's directory to the entries of its queue.

use std::time::{Duration, UNIX_EPOCH};

use lock_core::{Entry, Holder, Kind};
use zookeeper_client::Stat;

use crate::layout::{
    child,
    floor::Above,
    note::{Became, Note},
};

/// Returns the entries of a lock directory, first comer first.
pub(crate) fn in_order(children: Vec<String>) -> Vec<String> {
    let mut entries: Vec<_> =
        children.into_iter().filter_map(|child| Some((child::sequence(&child)?, child))).collect();
    // The counter wraps: only numbers that are not too far apart have an order.
    let Some((anyone, _)) = entries.first() else { return Vec::new() };
    let anyone = *anyone;
    entries.sort_unstable_by_key(|(sequence, _)| sequence.wrapping_sub(anyone));
    entries.into_iter().map(|(_, child)| child).collect()
}

/// Returns an entry of which only the name is known.
pub(crate) fn unread(name: &str) -> Entry {
    Entry::new(child::attempt(name), Holder::default()).with_kind(child::kind(name))
}

/// Returns the entry of a node. Curator names its nodes as we do; only the note tells them apart.
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
        // How much later, by the server's clock, the client wrote that it was admitted.
        Some(Became::Admitted) => u64::try_from(stat.mtime.saturating_sub(stat.ctime)).ok(),
        _ => None,
    };
    let granted = granted.and_then(|later| since?.checked_add(Duration::from_millis(later)));
    let holder = Holder::new(Some(note.holder), token).queued(since).granted(granted);
    Entry::new(note.attempt.or_else(|| child::attempt(name)), holder).with_kind(kind)
}
