//! What an attempt writes down about itself, and what others read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lock_core::{Entry, FencingToken, Holder, wall_clock};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::listing::Standing;

/// The value of an entry's key, as JSON. For people: nothing is decided by it.
#[derive(Debug, Deserialize, Serialize)]
struct Note<'a> {
    #[serde(borrow)]
    holder: std::borrow::Cow<'a, str>,
    /// Milliseconds since 1970.
    since: u64,
    attempt: String,
}

/// The note of an attempt that queues up now.
pub(crate) fn note(holder: &str, attempt: Uuid) -> Vec<u8> {
    let since = wall_clock().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let note = Note {
        holder: holder.into(),
        since: u64::try_from(since).unwrap_or(u64::MAX),
        attempt: attempt.to_string(),
    };
    // Strings and numbers always have a form in JSON.
    serde_json::to_vec(&note).unwrap_or_default()
}

/// An entry as others see it. All that is known of a foreign client's is that it is there.
pub(crate) fn read(standing: &Standing) -> Entry {
    let note: Option<Note<'_>> = serde_json::from_slice(&standing.value).ok();
    let Some(note) = note.filter(|_| standing.ours) else {
        return Entry::new(None, Holder::default());
    };
    let token = FencingToken::new(standing.place.revision.unsigned_abs());
    let holder = Holder::new(Some(note.holder.into_owned()), time(note.since), Some(token));
    Entry::new(Uuid::try_parse(&note.attempt).ok(), holder).with_kind(standing.place.kind)
}

/// Whose note this is.
pub(crate) fn attempt(value: &[u8]) -> Option<Uuid> {
    let note: Note<'_> = serde_json::from_slice(value).ok()?;
    Uuid::try_parse(&note.attempt).ok()
}

fn time(millis: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}
