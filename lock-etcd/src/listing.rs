//! From the keys below a name's prefix to the entries of its queue.

use etcd_client::proto::PbKeyValue;
use lock_core::Kind;

use crate::{
    layout::{Role, role},
    queue::Place,
};

/// An entry as the store has it.
#[derive(Debug)]
pub(crate) struct Standing {
    pub(crate) place: Place,
    /// Empty if only keys were asked for.
    pub(crate) value: Vec<u8>,
    /// Of this layout, and not a foreign client's.
    pub(crate) ours: bool,
}

/// The entries among keys that are in their own order, as etcd lists them.
pub(crate) fn entries(kvs: Vec<PbKeyValue>) -> Vec<Standing> {
    let mut entries: Vec<Standing> = Vec::with_capacity(kvs.len());
    for kv in kvs {
        let role = role(&kv.key);
        if let Some(kind) = role.kind() {
            let place = Place { revision: kv.create_revision, key: kv.key, kind };
            entries.push(Standing { place, value: kv.value, ours: role != Role::Foreign });
        } else if role == Role::Mark
            && let Some(Standing { place, .. }) = entries.last_mut()
            // An older mark is that of an entry that had this key before.
            && kv.mod_revision > place.revision
            && kv.key.strip_suffix(b".s") == Some(&place.key)
        {
            place.kind = Kind::Shared;
        }
    }
    entries
}

/// Where the entries stand, in the order of their keys.
pub(crate) fn places(kvs: Vec<PbKeyValue>) -> Vec<Place> {
    entries(kvs).into_iter().map(|entry| entry.place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kv(key: &str, create_revision: i64, mod_revision: i64) -> PbKeyValue {
        PbKeyValue { key: key.into(), create_revision, mod_revision, ..Default::default() }
    }

    #[test]
    fn marks_and_signals_are_no_entries() {
        let listed = places(vec![
            kv("a/1f.0", 10, 10),
            kv("a/1f.0.s", 12, 12),
            kv("a/1f.0.x", 12, 12),
            kv("a/1f.1", 11, 11),
            kv("a/1f.2.s", 9, 9),
            kv("a/1f.3.r", 13, 13),
            kv("a/go", 14, 14),
        ]);
        let listed: Vec<_> = listed.iter().map(|place| (place.revision, place.kind)).collect();
        assert_eq!(
            listed,
            [(10, Kind::Shared), (11, Kind::Exclusive), (13, Kind::Shared), (14, Kind::Exclusive)]
        );
    }

    /// Somebody deleted the entry without its mark, and the key is used again.
    #[test]
    fn a_mark_from_before_the_entry_does_not_count() {
        let kind = |marked| places(vec![kv("a/1f.0", 10, 10), kv("a/1f.0.s", 5, marked)])[0].kind;
        assert_eq!(kind(9), Kind::Exclusive);
        assert_eq!(kind(11), Kind::Shared, "marked again");
    }
}
