//! The reason why waits timed out.

use uuid::Uuid;

use crate::{Entry, Holder};

/// The holder, and the place of each attempt with a wait that timed out.
///
/// [`DistributedLock::diagnose`](crate::DistributedLock::diagnose) returns it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct Diagnosis {
    /// The first entry in the queue: it holds the lock or is about to. `None` if the name is free.
    pub holder: Option<Holder>,
    /// The place of each attempt, in the order of the request: 0 if it holds the lock, else one
    /// more than the number of waiters before it. `None` if it is not in the queue, or the store
    /// cannot tell.
    pub places: Vec<Option<usize>>,
}

impl Diagnosis {
    /// A diagnosis as a driver read it.
    pub fn new(holder: Option<Holder>, places: Vec<Option<usize>>) -> Self {
        Self { holder, places }
    }

    /// Computes the diagnosis for these attempts from a whole queue in order.
    #[doc(hidden)]
    pub fn of(queue: &[Entry], attempts: &[Uuid]) -> Self {
        let holder = queue.first().map(|entry| entry.holder.clone());
        Self { holder, places: attempts.iter().map(|attempt| place(queue, *attempt)).collect() }
    }
}

fn place(queue: &[Entry], attempt: Uuid) -> Option<usize> {
    let index = queue.iter().position(|entry| entry.attempt == Some(attempt))?;
    match queue[index].holds {
        true => Some(0),
        false => Some(queue[..index].iter().filter(|entry| !entry.holds).count() + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holders_stand_at_zero_and_are_not_counted_among_the_waiters() {
        let ids: Vec<_> = (0..5).map(|_| Uuid::new_v4()).collect();
        let entry = |id: Uuid| Entry::new(Some(id), Holder::default());
        let queue = [
            entry(ids[0]).holding(),
            entry(ids[1]).holding(),
            entry(ids[2]),
            Entry::new(None, Holder::default()),
            entry(ids[3]),
        ];
        let diagnosis = Diagnosis::of(&queue, &[ids[4], ids[3], ids[2], ids[1]]);
        assert_eq!(diagnosis.places, [None, Some(3), Some(1), Some(0)]);
        assert_eq!(diagnosis.holder, Some(Holder::default()));
    }

    #[test]
    fn an_empty_queue_has_no_holder() {
        assert_eq!(Diagnosis::of(&[], &[Uuid::nil()]), Diagnosis::new(None, vec![None]));
    }
}
