//! The note that an attempt writes about itself, and how others read it.

use std::{
    num::NonZeroU64,
    time::{Duration, UNIX_EPOCH},
};

use lock_core::{Entry, FencingToken, Holder, wall_clock};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::layout::{floor::Record, keys::Role, listing::Standing};

/// The value of an entry's key, or of its note's key, as JSON. It is for people. Only its attempt's
/// id is used for decisions.
#[derive(Debug, Deserialize, Serialize)]
struct Note<'a> {
    #[serde(borrow)]
    holder: std::borrow::Cow<'a, str>,
    /// Milliseconds since 1970.
    since: u64,
    attempt: String,
    /// The token floor that the entry counts from, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    floor: Option<NonZeroU64>,
}

/// Writes the note of an attempt that queues up now, and whose session has this token floor.
pub(crate) fn write(holder: &str, attempt: Uuid, floor: &Record) -> Vec<u8> {
    let since = wall_clock().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let note = Note {
        holder: holder.into(),
        since: u64::try_from(since).unwrap_or(u64::MAX),
        attempt: attempt.to_string(),
        floor: NonZeroU64::new(floor.above),
    };
    // Strings and numbers always have a form in JSON.
    serde_json::to_vec(&note).unwrap_or_default()
}

/// Returns an entry as others see it. Of a foreign client's entry only its existence is known.
pub(crate) fn read(standing: &Standing) -> Entry {
    if standing.role == Role::Foreign {
        return Entry::new(None, Holder::default());
    }
    let holder = holder(&standing.note, standing.entry.revision, standing.passed_on);
    Entry::new(attempt(&standing.note), holder).with_kind(standing.entry.kind)
}

/// Returns the holder or waiter of the entry with this note and create revision. The note of a lock
/// that was passed on has the time of that, not the start of the hold.
pub(crate) fn holder(note: &[u8], revision: i64, passed_on: bool) -> Holder {
    let note = serde_json::from_slice::<Note<'_>>(note).ok();
    let floor = note.as_ref().and_then(|note| note.floor).map_or(0, NonZeroU64::get);
    let token = Some(FencingToken::new(floor.saturating_add(revision.unsigned_abs())));
    match note {
        Some(note) => {
            let since = UNIX_EPOCH.checked_add(Duration::from_millis(note.since));
            let since = since.filter(|_| !passed_on);
            Holder::new(Some(note.holder.into_owned()), token).queued(since)
        }
        None => Holder::new(None, token),
    }
}

/// Returns the attempt that wrote this note.
pub(crate) fn attempt(value: &[u8]) -> Option<Uuid> {
    let note: Note<'_> = serde_json::from_slice(value).ok()?;
    Uuid::try_parse(&note.attempt).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As clients have left them in stores.
    #[test]
    fn notes_of_layout_1_are_read() {
        const START: &str = r#"{"holder":"worker pid 7 on h","since":1767225600000"#;
        const ID: &str = r#","attempt":"54c4cafc-6f4e-4d0b-9a55-1c8d3f0d2c11""#;
        let id = Uuid::from_u128(0x54c4_cafc_6f4e_4d0b_9a55_1c8d_3f0d_2c11);
        for (more, token) in [("", 41), (r#","floor":1000"#, 1041), (r#","later":{"a":1}"#, 41)] {
            let note = format!("{START}{ID}{more}}}").into_bytes();
            assert_eq!(attempt(&note), Some(id), "{more}");
            let read = holder(&note, 41, false);
            assert_eq!(read.description.as_deref(), Some("worker pid 7 on h"));
            assert_eq!(read.token, Some(FencingToken::new(token)), "{more}");
            assert_eq!(read.queued_at, Some(UNIX_EPOCH + Duration::from_secs(1_767_225_600)));
        }
        let written = write("worker pid 7 on h", id, &Record::default());
        let written = String::from_utf8(written).unwrap();
        assert!(written.starts_with(&START[..START.len() - 13]), "{written}");
        assert!(written.ends_with(&format!("{ID}}}")), "{written}");
    }
}
