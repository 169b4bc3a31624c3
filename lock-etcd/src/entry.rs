//! What an attempt writes down about itself, and what others read.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lock_core::{Entry, Holder, wall_clock};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{floor::Record, layout::Role, listing::Standing};

/// The value of an entry's key, or of its note's key, as JSON. For people: nothing is decided by it
/// but whose entry it is.
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
pub(crate) fn read(standing: &Standing, floor: &Record) -> Entry {
    if standing.role == Role::Foreign {
        return Entry::new(None, Holder::default());
    }
    let holder = holder(&standing.note, standing.place.revision, floor);
    Entry::new(attempt(&standing.note), holder).with_kind(standing.place.kind)
}

/// Who made the entry with this note and create revision.
pub(crate) fn holder(note: &[u8], revision: i64, floor: &Record) -> Holder {
    let token = Some(floor.token(revision));
    match serde_json::from_slice::<Note<'_>>(note) {
        Ok(note) => Holder::new(Some(note.holder.into_owned()), time(note.since), token),
        Err(_) => Holder::new(None, None, token),
    }
}

/// Whose note this is.
pub(crate) fn attempt(value: &[u8]) -> Option<Uuid> {
    let note: Note<'_> = serde_json::from_slice(value).ok()?;
    Uuid::try_parse(&note.attempt).ok()
}

fn time(millis: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_millis(millis))
}
