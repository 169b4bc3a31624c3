//! The queue rule: which entries in line hold the lock.
//!
//! A name is a queue in order of arrival. An entry is admitted when the live entries before it
//! leave room for it. Mutex, read-write lock and semaphore are one queue with different kinds. The
//! rule is pure; a store supplies the order (etcd's revision, ZooKeeper's sequence) and the live
//! entries.
//!
//! The set of entries before an entry only shrinks. So an old view of it, if it is not older than
//! the entry itself, may delay the entry but never admits it wrongly.

pub use crate::kind::Kind;

/// The verdict of the rule on an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Verdict {
    /// It holds the lock.
    Admitted,
    /// It waits at least until the entry at this index (in the order given) is gone. Checking
    /// earlier is useless, so this is the one entry to watch.
    Behind(usize),
    /// It waits for permits: any departure before it may be enough.
    Full,
}

/// Judges an entry by the live entries `before` it, in order of arrival.
///
/// ```
/// # mod distlock { pub use lock_core as driver; }
/// use distlock::driver::queue::{Kind, Verdict, judge};
///
/// assert_eq!(judge(&[], Kind::Exclusive), Verdict::Admitted);
/// assert_eq!(judge(&[Kind::Exclusive; 3], Kind::Exclusive), Verdict::Behind(2));
/// // A reader passes other readers, but not the writer who came first.
/// let before = [Kind::Shared, Kind::Exclusive, Kind::Shared];
/// assert_eq!(judge(&before, Kind::Shared), Verdict::Behind(1));
/// ```
pub fn judge(before: &[Kind], mine: Kind) -> Verdict {
    let excludes = |other: &Kind| match (*other, mine) {
        (Kind::Shared, Kind::Shared) => false,
        (Kind::Permit { limit: theirs, .. }, Kind::Permit { limit: mine, .. }) => theirs != mine,
        // Different kinds on one name exclude each other, and so do different numbers of permits.
        _ => true,
    };
    if let Some(last) = before.iter().rposition(excludes) {
        return Verdict::Behind(last);
    }
    match mine {
        Kind::Permit { weight, limit } if taken(before) + u64::from(weight) > u64::from(limit) => {
            Verdict::Full
        }
        _ => Verdict::Admitted,
    }
}

/// How many entries of a queue are admitted. They are always the first ones: an entry that waits
/// stops all entries behind it, so none is overtaken and none starves.
pub fn admitted(queue: impl IntoIterator<Item = Kind>) -> usize {
    let mut queue = queue.into_iter();
    let Some(first) = queue.next() else { return 0 };
    let mut taken = weight(&first);
    let fits = |next: &Kind| match (first, *next) {
        (Kind::Shared, Kind::Shared) => true,
        (Kind::Permit { limit: theirs, .. }, Kind::Permit { weight, limit }) => {
            taken += u64::from(weight);
            theirs == limit && taken <= u64::from(limit)
        }
        _ => false,
    };
    1 + queue.take_while(fits).count()
}

/// Returns the limit of the first permit entry in `before` if it differs from the limit of `mine`:
/// with two limits the two entries would disagree on the verdict. Only the first one sets the
/// limit: an entry behind it may be about to be refused itself.
pub fn other_limit(before: impl IntoIterator<Item = Kind>, mine: Kind) -> Option<u32> {
    let Kind::Permit { limit: own, .. } = mine else { return None };
    let limits = before.into_iter().filter_map(|kind| match kind {
        Kind::Permit { limit, .. } => Some(limit),
        _ => None,
    });
    limits.take(1).find(|first| *first != own)
}

fn taken(before: &[Kind]) -> u64 {
    before.iter().map(weight).sum()
}

fn weight(kind: &Kind) -> u64 {
    match kind {
        Kind::Permit { weight, .. } => u64::from(*weight),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use proptest::{
        collection::vec,
        prelude::*,
        sample::{Index, select},
    };

    use super::*;

    fn kinds() -> impl Strategy<Value = Vec<Kind>> {
        let permit = |weight, limit| Kind::Permit { weight, limit };
        let all = [Kind::Exclusive, Kind::Shared, permit(1, 3), permit(2, 3), permit(1, 2)];
        vec(select(all.to_vec()), 0..8)
    }

    /// The holders in a queue.
    fn holders(queue: &[Kind]) -> Vec<Kind> {
        let holds = |i: &usize| judge(&queue[..*i], queue[*i]) == Verdict::Admitted;
        (0..queue.len()).filter(holds).map(|i| queue[i]).collect()
    }

    proptest! {
        #[test]
        fn holders_are_compatible(queue in kinds()) {
            let holders = holders(&queue);
            let exclusive = holders.iter().filter(|k| **k == Kind::Exclusive).count();
            prop_assert!(exclusive <= 1);
            prop_assert!(exclusive == 0 || holders.len() == 1);
            prop_assert!(taken(&holders) <= 3);
            prop_assert!(!holders.contains(&Kind::Shared) || holders.iter().all(|k| *k == Kind::Shared));
        }

        #[test]
        fn the_first_is_always_admitted(queue in kinds()) {
            prop_assert_eq!(queue.is_empty(), holders(&queue).is_empty());
        }

        #[test]
        fn the_admitted_are_the_first_ones(queue in kinds()) {
            let holders = holders(&queue);
            prop_assert_eq!(&queue[..holders.len()], &holders[..]);
            prop_assert_eq!(admitted(queue), holders.len());
        }

        #[test]
        fn a_departure_never_takes_a_grant_away(queue in kinds(), gone in any::<Index>()) {
            let Some((mine, before)) = queue.split_last() else { return Ok(()) };
            if before.is_empty() || judge(before, *mine) != Verdict::Admitted {
                return Ok(());
            }
            let mut fewer = before.to_vec();
            fewer.remove(gone.index(before.len()));
            prop_assert_eq!(judge(&fewer, *mine), Verdict::Admitted);
        }

        #[test]
        fn only_the_watched_departure_can_help(queue in kinds(), gone in any::<Index>()) {
            let Some((mine, before)) = queue.split_last() else { return Ok(()) };
            if let Verdict::Behind(watched) = judge(before, *mine) {
                let gone = gone.index(before.len());
                let mut fewer = before.to_vec();
                fewer.remove(gone);
                let helped = judge(&fewer, *mine) == Verdict::Admitted;
                prop_assert!(!helped || gone == watched);
            }
        }
    }
}
