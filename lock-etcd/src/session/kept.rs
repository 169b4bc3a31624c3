//! The keys of locks that a client left to other processes.
//!
//! Such a key must not be used for another attempt of the client as long as the lock stands, and nobody
//! tells the client when it ends. So it is looked for, now and then, when more are left.

use std::sync::Arc;

use crate::{
    layout::key_slots::Slot,
    session::Session,
    wire::{connection::Connection, reads},
};

/// So many are kept without a look.
const FEW: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Kept {
    keys: Vec<Left>,
    /// At how many to look next; none before the first look.
    most: usize,
}

/// A key that is not free as long as the entry with this create revision stands.
#[derive(Clone, Debug)]
struct Left {
    key: Arc<str>,
    revision: i64,
    _slot: Arc<Slot>,
}

impl Kept {
    fn add(&mut self, left: Left) -> bool {
        self.keys.push(left);
        let many = self.keys.len() > self.most.max(FEW);
        if many {
            self.most = self.keys.len() * 2;
        }
        many
    }
}

/// Keeps a key from being used again. Answers whether it is time to look for those that are free.
pub(crate) fn keep(session: &Session, key: Arc<str>, revision: i64, slot: Arc<Slot>) -> bool {
    session.kept().add(Left { key, revision, _slot: slot })
}

/// Gives back the keys of locks that do not stand any more.
pub(crate) async fn look(session: &Session, connection: &Connection) {
    let looked: Vec<_> = session.kept().keys.clone();
    let keys: Vec<_> = looked.iter().map(|left| &*left.key).collect();
    let give_up = || session.ended.is_cancelled();
    // If it fails, the next look finds them.
    let Ok(created) = reads::created(connection, &keys, give_up).await else { return };
    let gone = |left: &&Left, created: &Option<i64>| *created != Some(left.revision);
    let gone: Vec<_> = looked
        .iter()
        .zip(&created)
        .filter_map(|(left, created)| gone(&left, created).then_some(left.revision))
        .collect();
    let mut kept = session.kept();
    kept.keys.retain(|left| !gone.contains(&left.revision));
    kept.most = kept.keys.len() * 2;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::key_slots::Slots;

    #[test]
    fn a_look_is_due_when_there_are_twice_as_many_as_after_the_last() {
        let (slots, mut kept) = (Arc::new(Slots::default()), Kept::default());
        let mut add = |revision| {
            let slot = Arc::new(slots.take(&"a/".into()));
            kept.add(Left { key: "a/1.0".into(), revision, _slot: slot })
        };
        assert!((0..64).all(|revision| !add(revision)));
        assert!(add(64));
        assert!((65..130).all(|revision| !add(revision)));
        assert!(add(130));
    }
}
