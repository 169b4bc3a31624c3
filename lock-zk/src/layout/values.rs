//! The values of a leader, as its node keeps them. Pure.
//!
//! A watch tells that a node has changed, but not how often. So the node keeps some of the earlier
//! values beside the newest one, and numbers them: an observer that looks late finds what it
//! missed.

use std::sync::Arc;

use crate::layout::note::Note;

/// The most values that a node keeps, the newest one included.
const MOST: usize = 16;
/// The most bytes of the earlier values together.
const MOST_BYTES: usize = 16 * 1024;
/// The newest values of a leader, in order; none if it holds a plain lock.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    first: u64,
    kept: Vec<Arc<[u8]>>,
}

impl Values {
    pub(crate) fn new(value: Option<Arc<[u8]>>) -> Self {
        Self { first: 0, kept: value.into_iter().collect() }
    }

    /// Returns the same values with a newer one.
    pub(crate) fn with(&self, value: &[u8]) -> Self {
        let mut all = self.clone();
        if all.kept.is_empty() {
            // The holder of a plain lock led with an empty value, which had the number 0.
            all.first = 1;
        }
        let bytes = |kept: &[Arc<[u8]>]| kept.iter().map(|earlier| earlier.len()).sum::<usize>();
        while all.kept.len() >= MOST || bytes(&all.kept) > MOST_BYTES {
            all.kept.remove(0);
            all.first += 1;
        }
        all.kept.push(value.into());
        all
    }

    /// Returns the data of a node: its note, and then the values.
    pub(crate) fn after(&self, note: Note<&str>) -> Vec<u8> {
        let values = self.kept.iter().map(|value| value.len()).collect();
        let mut data = Note { first: self.first, values, ..note }.write();
        if !self.kept.is_empty() {
            data.push(b'\n');
            self.kept.iter().for_each(|value| data.extend_from_slice(value));
        }
        data
    }
}

/// Returns the values in a node's data, the newest one last, each with its number. Data that is not
/// ours is one value as a whole; its number is how often the node was written to.
pub(crate) fn read(data: &[u8], version: i32) -> Vec<(u64, Vec<u8>)> {
    read_ours(data).unwrap_or_else(|| vec![(version.unsigned_abs().into(), data.to_vec())])
}

fn read_ours(data: &[u8]) -> Option<Vec<(u64, Vec<u8>)>> {
    let note = Note::read(data)?;
    if note.values.is_empty() {
        return Some(vec![(0, Vec::new())]);
    }
    let start = data.iter().position(|byte| *byte == b'\n')? + 1;
    let mut rest = &data[start..];
    let mut values = Vec::with_capacity(note.values.len());
    for (number, length) in (note.first..).zip(note.values) {
        let (value, after) = rest.split_at_checked(length)?;
        values.push((number, value.to_vec()));
        rest = after;
    }
    rest.is_empty().then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(values: &Values) -> Vec<u8> {
        values.after(Note { holder: "h", since: 7, ..Note::default() })
    }

    #[test]
    fn said_values_are_read_in_order() {
        let values = Values::new(Some(b"a\nb"[..].into())).with(b"").with(b"\0{}");
        let data = data(&values);
        assert_eq!(data, b"{\"holder\":\"h\",\"since\":7,\"values\":[3,0,3]}\na\nb\0{}");
        let expected = [&b"a\nb"[..], b"", b"\0{}"].map(<[u8]>::to_vec);
        assert_eq!(read(&data, 9), (0..).zip(expected).collect::<Vec<_>>());
    }

    #[test]
    fn a_lock_without_a_value_says_an_empty_one() {
        let values = Values::new(None);
        assert_eq!(data(&values), br#"{"holder":"h","since":7}"#);
        assert_eq!(read(&data(&values), 3), [(0, Vec::new())]);
        assert_eq!(read(&data(&values.with(b"x")), 3), [(1, b"x".to_vec())]);
        let empty = Values::new(Some([].into()));
        assert_eq!(read(&data(&empty.with(b"x")), 3), [(0, Vec::new()), (1, b"x".to_vec())]);
    }

    #[test]
    fn only_the_newest_are_kept() {
        let mut values = Values::new(Some(b"0"[..].into()));
        for n in 1..40 {
            values = values.with(n.to_string().as_bytes());
        }
        let kept = read(&data(&values), 0);
        assert_eq!(kept.len(), MOST);
        assert!(kept.iter().all(|(n, value)| n.to_string().as_bytes() == value), "{kept:?}");
        assert_eq!(kept.last(), Some(&(39, b"39".to_vec())));
    }

    #[test]
    fn long_values_are_not_kept_beside_newer_ones() {
        let long = vec![b'x'; MOST_BYTES];
        let values = Values::new(Some(long.clone().into())).with(b"y");
        assert_eq!(read(&data(&values), 0).len(), 2);
        let values = values.with(b"z");
        assert_eq!(read(&data(&values), 0), [(1, b"y".to_vec()), (2, b"z".to_vec())]);
    }

    #[test]
    fn data_of_other_clients_is_one_value() {
        for data in
            [&b"10.0.0.1"[..], b"", b"{}", b"\n", br#"{"holder":"h","since":1,"values":[9]}"#]
        {
            assert_eq!(read(data, 4), [(4, data.to_vec())]);
        }
    }
}
