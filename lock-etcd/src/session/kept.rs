//! The keys of locks that a client left to other processes.
//!
//! Such a key must not be used for another attempt of the client as long as the lock stands, and
//! the client gets no news when it ends. So the client looks for ended locks now and then, when
//! more are left.

use std::sync::Arc;

use crate::layout::key_slots::Slot;

/// This many are kept without a look.
const FEW: usize = 64;

/// The keys of one session that must not be used again yet.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    keys: Vec<KeptKey>,
    /// The number of keys at which to look next; 0 before the first look.
    most: usize,
}

/// A key that is not free as long as the entry with this create revision stands.
#[derive(Clone, Debug)]
pub(crate) struct KeptKey {
    pub(crate) key: Arc<str>,
    pub(crate) revision: i64,
    pub(crate) _slot: Arc<Slot>,
}

impl Kept {
    /// Keeps a key from being used again. Returns whether it is time to look for free keys.
    pub(crate) fn add(&mut self, left: KeptKey) -> bool {
        self.keys.push(left);
        let many = self.keys.len() > self.most.max(FEW);
        if many {
            self.most = self.keys.len() * 2;
        }
        many
    }

    pub(crate) fn all(&self) -> Vec<KeptKey> {
        self.keys.clone()
    }

    /// Gives back the keys of the entries with these create revisions.
    pub(crate) fn give_back(&mut self, gone: &[i64]) {
        self.keys.retain(|left| !gone.contains(&left.revision));
        self.most = self.keys.len() * 2;
    }
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
            kept.add(KeptKey { key: "a/1.0".into(), revision, _slot: slot })
        };
        assert!((0..64).all(|revision| !add(revision)));
        assert!(add(64));
        assert!((65..130).all(|revision| !add(revision)));
        assert!(add(130));
    }
}
