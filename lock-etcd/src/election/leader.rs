//! An observer's view of the queue of one name, and of its leader. Pure: no I/O, no clock.

use std::collections::{BTreeSet, HashMap};

use etcd_client::{Event, EventType, KeyValue, proto::PbKeyValue};
use lock_core::Kind;

use crate::layout::keys::{self, Role, role};

/// The entry that leads.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct First {
    pub(crate) key: Vec<u8>,
    /// Its create revision.
    pub(crate) revision: i64,
    pub(crate) value: Vec<u8>,
}

/// The queue at some revision.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) revision: i64,
    keys: HashMap<Vec<u8>, PbKeyValue>,
    /// The entries by their place in line.
    order: BTreeSet<(i64, Vec<u8>)>,
}

impl View {
    pub(crate) fn new(revision: i64, keys: Vec<PbKeyValue>) -> Self {
        let mut view = Self { revision, ..Self::default() };
        keys.into_iter().for_each(|kv| view.put(kv));
        view
    }

    /// Applies changes in order. Returns the leader after each revision that changed it. The
    /// changes of one transaction, or of the end of one lease, have one revision.
    pub(crate) fn apply(&mut self, changes: Vec<Event>) -> Vec<Option<First>> {
        let at = |change: &Event| change.kv().map_or(0, KeyValue::mod_revision);
        let mut told = self.first();
        let mut news = Vec::new();
        let mut changes = changes.into_iter().peekable();
        while let Some(change) = changes.next() {
            let (kind, now) = (change.event_type(), at(&change));
            match (kind, change.0.kv) {
                (EventType::Put, Some(kv)) => self.put(kv),
                (EventType::Delete, Some(kv)) => self.delete(&kv.key),
                (_, None) => {}
            }
            self.revision = self.revision.max(now);
            let first = self.first();
            if changes.peek().is_none_or(|next| at(next) != now) && first != told {
                news.push(first.clone());
                told = first;
            }
        }
        news
    }

    fn put(&mut self, kv: PbKeyValue) {
        self.delete(&kv.key);
        if role(&kv.key).kind().is_some() {
            self.order.insert((kv.create_revision, kv.key.clone()));
        }
        self.keys.insert(kv.key.clone(), kv);
    }

    fn delete(&mut self, key: &[u8]) {
        if let Some(kv) = self.keys.remove(key) {
            self.order.remove(&(kv.create_revision, kv.key));
        }
    }

    /// Returns when a key was written last, as far as this is known; otherwise 0.
    pub(crate) fn modified(&self, key: &[u8]) -> i64 {
        self.keys.get(key).map_or(0, |kv| kv.mod_revision)
    }

    /// Whether there is no entry.
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns the leader: the first in line, if it holds the lock alone.
    pub(crate) fn first(&self) -> Option<First> {
        let (revision, key) = self.order.first()?;
        let (role, kv) = (role(key), self.keys.get(key)?);
        let mark = keys::mark(&String::from_utf8_lossy(key));
        let mark = self.keys.get(mark.as_bytes());
        // An older mark belongs to an entry that had this key before.
        let shared =
            role != Role::Foreign && mark.is_some_and(|mark| mark.mod_revision > *revision);
        let leads = role.kind() == Some(Kind::Exclusive) && !shared;
        leads.then(|| First { key: key.clone(), revision: *revision, value: kv.value.clone() })
    }
}

#[cfg(test)]
mod tests {
    use etcd_client::proto::PbEvent;

    use super::*;

    fn seen(key: &str, create_revision: i64, mod_revision: i64, value: &str) -> PbKeyValue {
        let (key, value) = (key.into(), value.into());
        PbKeyValue { key, create_revision, mod_revision, value, ..Default::default() }
    }

    fn put(key: &str, created: i64, modified: i64, value: &str) -> Event {
        let kv = Some(seen(key, created, modified, value));
        Event(PbEvent { kv, ..Default::default() })
    }

    fn deleted(key: &str, at: i64) -> Event {
        Event(PbEvent { r#type: 1, ..put(key, 0, at, "").0 })
    }

    fn news(view: &mut View, changes: Vec<Event>) -> Vec<Option<(i64, String)>> {
        let shown = |first: First| (first.revision, String::from_utf8(first.value).unwrap());
        view.apply(changes).into_iter().map(|first| first.map(shown)).collect()
    }

    fn leads(revision: i64, value: &str) -> Option<(i64, String)> {
        Some((revision, value.to_owned()))
    }

    #[test]
    fn all_values_and_the_vacancy_are_reported_in_order() {
        let mut view = View::new(9, Vec::new());
        let changes = vec![
            put("a/1.0.v", 10, 10, "x"),
            put("a/1.0.v", 10, 11, "y"),
            put("a/1.0.v", 10, 12, "y"),
            put("a/2.0.v", 13, 13, "waits"),
            deleted("a/1.0.v", 14),
            deleted("a/2.0.v", 15),
        ];
        let expected = [leads(10, "x"), leads(10, "y"), leads(13, "waits"), None];
        assert_eq!(news(&mut view, changes), expected);
        assert_eq!(view.revision, 15);
    }

    #[test]
    fn changes_of_one_revision_are_judged_together() {
        let all = [seen("a/1.0.v", 5, 5, "x"), seen("a/1.1.v", 6, 6, "y"), seen("a/go", 7, 7, "z")];
        let mut view = View::new(9, all.into());
        // One lease ends, and its entries with it.
        let both = vec![deleted("a/1.0.v", 10), deleted("a/1.1.v", 10)];
        assert_eq!(news(&mut view, both), [leads(7, "z")]);
        // The key of an entry is used again.
        assert_eq!(news(&mut view, vec![deleted("a/go", 11)]), [None]);
        assert_eq!(news(&mut view, vec![put("a/go", 12, 12, "z")]), [leads(12, "z")]);
    }

    #[test]
    fn a_shared_entry_does_not_lead() {
        let mut view = View::new(9, vec![seen("a/1.0.r", 5, 5, ""), seen("a/1.1.v", 6, 6, "x")]);
        assert_eq!(view.first(), None);
        assert_eq!(news(&mut view, vec![deleted("a/1.0.r", 10)]), [leads(6, "x")]);
        // A downgrade: a mark and a signal beside the entry.
        let marked = vec![put("a/1.1.v.s", 11, 11, ""), put("a/1.1.v.x", 11, 11, "")];
        assert_eq!(news(&mut view, marked), [None]);
        let rest = vec![deleted("a/1.1.v.x", 12), deleted("a/1.1.v", 13)];
        assert_eq!(news(&mut view, rest), []);
        // Its mark was left, and its key is used again.
        assert_eq!(news(&mut view, vec![put("a/1.1.v", 14, 14, "y")]), [leads(14, "y")]);
        let permit = View::new(9, vec![seen("a/1.0.p1.2", 5, 5, "")]);
        assert_eq!(permit.first(), None);
    }
}
