//! The error of an entry that does not hold the lock. Pure; the rule is lock-core's.

use lock_core::{
    Error, Request, limit_conflict,
    queue::{self, Verdict},
};

use crate::layout::listing::QueueEntry;

pub(super) fn contended(request: &Request) -> Error {
    Error::Contended { name: request.name.clone() }
}

/// Returns the error of an entry behind others that does not hold the lock yet, or never will;
/// `None` if it holds it.
pub(super) fn refusal(request: &Request, before: &[QueueEntry]) -> Option<Error> {
    let mut before: Vec<_> = before.iter().map(|entry| (entry.revision, entry.kind)).collect();
    // Lists are in the order of the keys, and the first one in line sets the number of permits.
    before.sort_unstable_by_key(|(revision, _)| *revision);
    let (kind, before) = (request.kind, before.into_iter().map(|(_, k)| k).collect::<Vec<_>>());
    match queue::other_limit(before.iter().copied(), kind) {
        Some(found) => Some(limit_conflict(request, found)),
        None => (queue::judge(&before, kind) != Verdict::Admitted).then(|| contended(request)),
    }
}
