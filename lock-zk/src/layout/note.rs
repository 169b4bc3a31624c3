//! The data of an entry's node: which client made the node, and what the entry became since.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The data of a node, up to the first newline. The data of Curator's and kazoo's nodes does not
/// read like this.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(crate) struct Note<S = String> {
    pub(crate) holder: S,
    /// Milliseconds since 1970.
    pub(crate) since: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) became: Option<Became>,
    /// The attempt to which the grant belongs, if it is not the one in the node's name: an
    /// upgrade's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) attempt: Option<Uuid>,
    /// The number of the first value behind the note.
    #[serde(default, skip_serializing_if = "is_nothing")]
    pub(crate) first: u64,
    /// The lengths of the values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) values: Vec<usize>,
}

/// A change of an entry that keeps its name, and so its place. Never taken back.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Became {
    /// Its holder shares the lock from now on, although its name says otherwise.
    Shared,
    /// It holds its permits. Written only if an attempt behind may have seen it waiting.
    Admitted,
}

impl Note {
    pub(crate) fn read(data: &[u8]) -> Option<Self> {
        serde_json::from_slice(data.split(|byte| *byte == b'\n').next()?).ok()
    }

    /// Returns what the entry with this data became.
    pub(crate) fn became(data: &[u8]) -> Option<Became> {
        Self::read(data)?.became
    }
}

fn is_nothing(number: &u64) -> bool {
    *number == 0
}

impl Note<&str> {
    pub(crate) fn write(&self) -> Vec<u8> {
        // Texts and a number always have a JSON form; a node without a note is still an entry.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(became: Option<Became>) -> Note<&'static str> {
        Note { holder: "the \"importer\"", since: 7, became, ..Note::default() }
    }

    #[test]
    fn a_written_note_is_read_back() {
        assert_eq!(note(None).write(), br#"{"holder":"the \"importer\"","since":7}"#);
        for became in [Became::Shared, Became::Admitted] {
            let mut data = note(Some(became)).write();
            data.extend(b"\nvalue\n");
            let read = Note::read(&data).unwrap();
            assert_eq!((read.holder.as_str(), read.since), (note(None).holder, 7));
            assert_eq!(Note::became(&data), Some(became));
        }
        let attempt = Some(Uuid::new_v4());
        let data = Note { attempt, ..note(None) }.write();
        assert_eq!(Note::read(&data).unwrap().attempt, attempt);
    }

    #[test]
    fn data_of_other_clients_is_no_note() {
        for data in [&b"10.0.0.1"[..], b"", b"{}", b"\xff"] {
            assert!(Note::read(data).is_none());
        }
    }
}
