//! From the keys below a name's prefix to the entries of its queue.

use std::{collections::HashMap, ops::RangeInclusive};

use etcd_client::proto::{PbKeyValue, PbRangeResponse};
use lock_core::Kind;

use crate::layout::keys::{self, Role, role};

/// One entry of a queue.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct QueueEntry {
    /// The revision that created it: its place in line, and the grant's fencing token.
    pub(crate) revision: i64,
    pub(crate) key: Vec<u8>,
    pub(crate) kind: Kind,
}

/// The entries before an attempt, in any order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    pub(crate) entries: Vec<QueueEntry>,
    /// Whether there are more, before these.
    pub(crate) more: bool,
    /// How many there are, if that is known. If there are more, marks and signals count, too.
    pub(crate) count: Option<usize>,
}

impl Before {
    /// All entries before an attempt.
    #[cfg(test)]
    pub(crate) fn all(entries: Vec<QueueEntry>) -> Self {
        Self { count: Some(entries.len()), entries, more: false }
    }

    /// Reads a range of a queue's keys, or the last of them.
    pub(crate) fn read(range: PbRangeResponse) -> Self {
        let (more, count) = (range.more, usize::try_from(range.count).unwrap_or_default());
        let entries = sorted_entries(range.kvs);
        let count = if more { count } else { entries.len() };
        Self { entries, more, count: Some(count) }
    }
}

/// A queue at a revision, or later.
#[derive(Clone, Debug)]
pub(crate) struct Listed {
    pub(crate) revision: i64,
    pub(crate) entries: Vec<QueueEntry>,
    /// It has all entries with these create revisions.
    pub(crate) range: RangeInclusive<i64>,
    /// The create revisions of entries of ours behind these that are gone.
    pub(crate) gone: Vec<i64>,
}

impl Listed {
    /// All entries of a queue.
    pub(crate) fn all(revision: i64, entries: Vec<QueueEntry>) -> Self {
        Self { revision, entries, range: 0..=i64::MAX, gone: Vec::new() }
    }

    /// An exclusive entry that stands, with its key and create revision.
    pub(crate) fn one(revision: i64, (key, at): (Vec<u8>, i64)) -> Self {
        let entry = QueueEntry { revision: at, key, kind: Kind::Exclusive };
        Self { revision, entries: vec![entry], range: at..=at, gone: Vec::new() }
    }

    /// Reads the keys of a queue: all, or the last of those up to a create revision.
    pub(crate) fn read(revision: i64, found: PbRangeResponse, up_to: Option<i64>) -> Self {
        let low = found.kvs.iter().map(|kv| kv.create_revision).min().filter(|_| found.more);
        // Another entry with the lowest revision may have been left out.
        let range = low.map_or(0, |low| low + 1)..=up_to.unwrap_or(i64::MAX);
        Self { revision, entries: sorted_entries(found.kvs), range, gone: Vec::new() }
    }

    /// Whether it shows no entry before the last one, though there are some: marks and signals
    /// stand there, too.
    pub(crate) fn is_blind(&self) -> bool {
        !self.has_the_head() && self.entries.len() < 2
    }

    /// Whether it goes back to the head of the queue.
    pub(crate) fn has_the_head(&self) -> bool {
        *self.range.start() == 0
    }
}

/// An entry as it is in the store.
pub(crate) struct Standing {
    pub(crate) entry: QueueEntry,
    pub(crate) role: Role,
    /// The etcd lease by which it lives; 0 if none.
    pub(crate) lease: i64,
    /// The value for observers. Empty if only keys were read, and if the value is the note.
    pub(crate) value: Vec<u8>,
    /// Empty if only keys were read, for a foreign client, and for a candidate until [`add_notes`].
    pub(crate) note: Vec<u8>,
    /// Whether the note was written after the entry: the lock was passed on since.
    pub(crate) passed_on: bool,
}

/// Returns the entries among keys that are sorted as etcd lists them.
pub(crate) fn entries(kvs: Vec<PbKeyValue>) -> Vec<Standing> {
    let mut entries: Vec<Standing> = Vec::with_capacity(kvs.len());
    for kv in kvs {
        let role = role(&kv.key);
        if let Some(kind) = role.kind() {
            let passed_on = is_passed_on(&role, &kv);
            let entry = QueueEntry { revision: kv.create_revision, key: kv.key, kind };
            let (value, note) = match role {
                Role::Ours(_) => (Vec::new(), kv.value),
                _ => (kv.value, Vec::new()),
            };
            entries.push(Standing { entry, role, lease: kv.lease, value, note, passed_on });
        } else if role == Role::Mark
            && let Some(Standing { entry, .. }) = entries.last_mut()
            // An older mark belongs to an entry that had this key before.
            && kv.mod_revision > entry.revision
            && kv.key.strip_suffix(b".s") == Some(&entry.key)
        {
            entry.kind = Kind::Shared;
        }
    }
    entries
}

/// Whether an entry was detached or adopted since it was made: no other request writes it again.
pub(crate) fn is_passed_on(role: &Role, kv: &PbKeyValue) -> bool {
    matches!(role, Role::Ours(_)) && kv.mod_revision != kv.create_revision
}

/// Adds the notes of candidates.
pub(crate) fn add_notes(entries: &mut [Standing], notes: Vec<PbKeyValue>) {
    let mut notes: HashMap<_, _> = notes.into_iter().map(|kv| (kv.key.clone(), kv)).collect();
    for standing in entries.iter_mut().filter(|standing| standing.role == Role::Candidate) {
        let key = keys::note(&String::from_utf8_lossy(&standing.entry.key));
        let note = notes.remove(key.as_bytes());
        // It was written with the entry. Another one belongs to an entry that had this key before.
        let note = note.filter(|kv| kv.mod_revision == standing.entry.revision);
        standing.note = note.map(|kv| kv.value).unwrap_or_default();
    }
}

/// Returns the entries alone, in the order of their keys.
pub(crate) fn queue_entries(kvs: Vec<PbKeyValue>) -> Vec<QueueEntry> {
    entries(kvs).into_iter().map(|standing| standing.entry).collect()
}

/// Same as [`queue_entries`], for keys in any order.
fn sorted_entries(mut kvs: Vec<PbKeyValue>) -> Vec<QueueEntry> {
    kvs.sort_unstable_by(|one, other| one.key.cmp(&other.key));
    queue_entries(kvs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kv(key: &str, create_revision: i64, mod_revision: i64) -> PbKeyValue {
        PbKeyValue { key: key.into(), create_revision, mod_revision, ..Default::default() }
    }

    #[test]
    fn marks_and_signals_are_no_entries() {
        let listed = queue_entries(vec![
            kv("a/1f.0", 10, 10),
            kv("a/1f.0.s", 12, 12),
            kv("a/1f.0.x", 12, 12),
            kv("a/1f.1", 11, 11),
            kv("a/1f.2.s", 9, 9),
            kv("a/1f.3.r", 13, 13),
            kv("a/go", 14, 14),
        ]);
        let listed: Vec<_> = listed.iter().map(|entry| (entry.revision, entry.kind)).collect();
        assert_eq!(
            listed,
            [(10, Kind::Shared), (11, Kind::Exclusive), (13, Kind::Shared), (14, Kind::Exclusive)]
        );
    }

    #[test]
    fn the_last_keys_of_a_queue_are_not_all_entries_before_an_attempt() {
        let kvs = vec![kv("a/2.0", 14, 14), kv("a/1.0.s", 13, 13), kv("a/1.0", 12, 12)];
        let found = PbRangeResponse { kvs, more: true, count: 9, ..Default::default() };
        let before = Before::read(found.clone());
        assert_eq!((before.more, before.count, before.entries.len()), (true, Some(9), 2));
        assert_eq!(before.entries[0].kind, Kind::Shared);
        let listed = Listed::read(20, found.clone(), Some(14));
        assert_eq!((listed.range.clone(), listed.has_the_head()), (13..=14, false));
        let all = Listed::read(20, PbRangeResponse { more: false, ..found }, Some(14));
        assert_eq!((all.range.clone(), all.has_the_head()), (0..=14, true));
    }

    #[test]
    fn a_note_is_its_entrys_only() {
        let kv =
            |key, revision, value: &str| PbKeyValue { value: value.into(), ..kv(key, 1, revision) };
        let raw = |key, revision| PbKeyValue { create_revision: revision, ..kv(key, 20, "raw") };
        let mut entries = entries(vec![
            raw("a/1f.0", 10),
            raw("a/1f.1.v", 11),
            raw("a/1f.2.v", 12),
            raw("a/1f.3.v", 13),
            raw("a/go", 14),
        ]);
        let notes = vec![kv("a#1f.1.v", 11, "note"), kv("a#1f.2.v", 9, "old")];
        add_notes(&mut entries, notes);
        let notes: Vec<_> = entries.iter().map(|entry| entry.note.as_slice()).collect();
        assert_eq!(notes, [&b"raw"[..], b"note", b"", b"", b""]);
    }

    /// Another client deleted the entry without its mark, and the key is used again.
    #[test]
    fn a_mark_from_before_the_entry_does_not_count() {
        let kind =
            |marked| queue_entries(vec![kv("a/1f.0", 10, 10), kv("a/1f.0.s", 5, marked)])[0].kind;
        assert_eq!(kind(9), Kind::Exclusive);
        assert_eq!(kind(11), Kind::Shared, "marked again");
    }
}
