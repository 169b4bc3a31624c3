//! Which keys of a queue this client uses.
//!
//! etcd keeps a deleted key in its index until the history is compacted, and counting or listing a
//! queue walks over all of them. With a key of its own for each attempt, a lock that was taken a
//! million times would take 100 ms to take once more. So an attempt borrows the first key that no
//! other attempt of this client is using, and what identifies it is the create revision, or the
//! attempt's id in its note.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The slots in use, by queue.
#[derive(Debug, Default)]
pub(crate) struct Slots(Mutex<HashMap<Arc<str>, Vec<u32>>>);

impl Slots {
    fn used(&self) -> MutexGuard<'_, HashMap<Arc<str>, Vec<u32>>> {
        // Nothing panics while it holds this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The lowest slot that is free. The slots in use are sorted.
    pub(crate) fn take(&self, queue: &Arc<str>) -> u32 {
        let mut used = self.used();
        let used = used.entry(queue.clone()).or_default();
        let at = (0..).zip(used.iter()).take_while(|(slot, used)| slot == *used).count();
        let slot = u32::try_from(at).unwrap_or(u32::MAX);
        used.insert(at, slot);
        slot
    }

    /// Nothing that was sent can touch the slot's key any more, or tell it from a later attempt's.
    pub(crate) fn give(&self, queue: &Arc<str>, slot: u32) {
        let mut queues = self.used();
        let Some(used) = queues.get_mut(queue) else { return };
        used.retain(|used| *used != slot);
        if used.is_empty() {
            queues.remove(queue);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_free_slot_is_taken_and_nothing_is_kept() {
        let (slots, queue, other) = (Slots::default(), "a/".into(), "b/".into());
        assert_eq!([(); 3].map(|()| slots.take(&queue)), [0, 1, 2]);
        assert_eq!(slots.take(&other), 0);
        slots.give(&queue, 1);
        assert_eq!([(); 2].map(|()| slots.take(&queue)), [1, 3]);
        for slot in 0..4 {
            slots.give(&queue, slot);
        }
        slots.give(&other, 0);
        assert!(slots.used().is_empty());
    }
}
