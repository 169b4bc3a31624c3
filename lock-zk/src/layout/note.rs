//! The data of an entry's node: which client made the node, what the entry became since, and the
//! leader's newest value.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The data of a node, up to the first newline; a leader's value is behind that. The data of
/// Curator's and kazoo's nodes does not read like this.
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

/// Returns what the leader with this data says: nothing if it holds a plain lock, and the data as a
/// whole if it is not ours.
pub(crate) fn value(data: &[u8]) -> &[u8] {
    match (Note::read(data), data.iter().position(|byte| *byte == b'\n')) {
        (None, _) => data,
        (Some(_), Some(end)) => &data[end + 1..],
        (Some(_), None) => &[],
    }
}

impl Note<&str> {
    /// Returns the data of a node with this note, and with the value of a leader.
    pub(crate) fn write(&self, value: Option<&[u8]>) -> Vec<u8> {
        // Texts and a number always have a JSON form; a node without a note is still an entry.
        let mut data = serde_json::to_vec(self).unwrap_or_default();
        if let Some(value) = value {
            data.push(b'\n');
            data.extend_from_slice(value);
        }
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(became: Option<Became>) -> Note<&'static str> {
        Note { holder: "the \"importer\"", since: 7, became, ..Note::default() }
    }

    /// As clients have left them in stores.
    #[test]
    fn notes_of_layout_1_are_read() {
        let id = Uuid::from_u128(0x54c4_cafc_6f4e_4d0b_9a55_1c8d_3f0d_2c11);
        for (more, became, attempt) in [
            ("", None, None),
            (r#","became":"shared""#, Some(Became::Shared), None),
            (r#","became":"admitted""#, Some(Became::Admitted), None),
            (r#","attempt":"54c4cafc-6f4e-4d0b-9a55-1c8d3f0d2c11""#, None, Some(id)),
            (r#","later":{"a":1}"#, None, None),
        ] {
            let data = format!("{{\"holder\":\"worker pid 7 on h\",\"since\":7{more}}}\nvalue");
            let read = Note::read(data.as_bytes()).unwrap();
            assert_eq!((read.holder.as_str(), read.since), ("worker pid 7 on h", 7), "{more}");
            assert_eq!((read.became, read.attempt), (became, attempt), "{more}");
            assert_eq!(value(data.as_bytes()), b"value");
        }
    }

    #[test]
    fn a_written_note_is_read_back() {
        assert_eq!(note(None).write(None), br#"{"holder":"the \"importer\"","since":7}"#);
        for became in [Became::Shared, Became::Admitted] {
            let data = note(Some(became)).write(Some(b"value\n"));
            let read = Note::read(&data).unwrap();
            assert_eq!((read.holder.as_str(), read.since), (note(None).holder, 7));
            assert_eq!(Note::became(&data), Some(became));
        }
        let attempt = Some(Uuid::new_v4());
        let data = Note { attempt, ..note(None) }.write(None);
        assert_eq!(Note::read(&data).unwrap().attempt, attempt);
    }

    #[test]
    fn a_value_is_read_as_it_was_written() {
        for said in [&b"a\nb"[..], b"", b"\0{}", b"\n"] {
            assert_eq!(value(&note(None).write(Some(said))), said);
        }
        assert_eq!(value(&note(None).write(None)), b"");
    }

    #[test]
    fn data_of_other_clients_is_no_note() {
        for data in [&b"10.0.0.1"[..], b"", b"{}", b"\xff", b"x\ny"] {
            assert!(Note::read(data).is_none());
            assert_eq!(value(data), data);
        }
    }
}
