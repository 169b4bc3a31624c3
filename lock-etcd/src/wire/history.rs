//! Reads of etcd's history: whether a grant came at once.

use etcd_client::GetOptions;
use lock_core::queue::{self, Verdict};

use crate::{
    layout::listing::{QueueEntry, queue_entries},
    wire::{
        connection::{Connection, Word},
        reads,
    },
};

/// For how many holders of a name the history is read.
pub(crate) const MOST: usize = 16;
/// How many keys of a queue are read: an entry behind more of them has probably waited.
const KEYS: i64 = 64;

/// Returns whether the entry with this create revision was granted when it was made. It reads the
/// queue at that revision once, which costs the holder nothing. Returns `false` also if etcd does
/// not know any more.
///
/// The time of a grant after a wait is not stored: etcd keeps revisions, and no times.
pub(crate) async fn entered_at_once(connection: &Connection, queue: &str, revision: i64) -> bool {
    let options = GetOptions::new()
        .with_prefix()
        .with_keys_only()
        .with_limit(KEYS)
        .with_revision(revision)
        .with_serializable();
    let answer = reads::get(connection, Word::Member, queue.as_bytes(), &options).await;
    // Compacted, or not known to this member yet. The result is for people, so the caller must not
    // fail.
    let Ok(answer) = answer else { return false };
    !answer.more() && admitted(queue_entries(answer.0.kvs), revision)
}

/// Whether the last entry of a queue has this revision and holds the lock.
fn admitted(mut entries: Vec<QueueEntry>, revision: i64) -> bool {
    entries.sort_unstable_by_key(|entry| entry.revision);
    let Some((own, before)) = entries.split_last() else { return false };
    let before: Vec<_> = before.iter().map(|entry| entry.kind).collect();
    own.revision == revision && queue::judge(&before, own.kind) == Verdict::Admitted
}

#[cfg(test)]
mod tests {
    use lock_core::Kind;

    use super::*;

    fn entries(kinds: &[(i64, Kind)]) -> Vec<QueueEntry> {
        let entry = |(revision, kind): &(i64, Kind)| QueueEntry {
            revision: *revision,
            key: revision.to_string().into(),
            kind: *kind,
        };
        kinds.iter().map(entry).collect()
    }

    #[test]
    fn a_grant_alone_or_beside_readers_is_at_once() {
        assert!(admitted(entries(&[(7, Kind::Exclusive)]), 7));
        assert!(admitted(entries(&[(7, Kind::Shared), (5, Kind::Shared)]), 7));
    }

    #[test]
    fn a_grant_behind_another_entry_or_unknown_is_not_at_once() {
        assert!(!admitted(entries(&[(5, Kind::Shared), (7, Kind::Exclusive)]), 7));
        assert!(!admitted(entries(&[(5, Kind::Exclusive)]), 7));
        assert!(!admitted(Vec::new(), 7));
    }
}
