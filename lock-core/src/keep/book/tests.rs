//! Due times of attempts, in random orders of the steps of a book.

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{LockName, Request};

/// An attempt with one of three TTLs.
struct Kept(Progress);

impl Deref for Kept {
    type Target = Progress;

    fn deref(&self) -> &Progress {
        &self.0
    }
}

fn attempt(seconds: u64) -> Arc<Kept> {
    let ttl = Duration::from_secs(seconds);
    let request = Request::new(LockName::new("orders").unwrap(), ttl);
    Arc::new(Kept(Progress::new(Uuid::new_v4(), &request, ttl / 3, ())))
}

#[derive(Clone, Debug)]
enum Step {
    Enter(u64),
    Forget(usize),
    TrySoon,
    AllDue,
    /// This many milliseconds pass, and due attempts are taken.
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (1u64..=3).prop_map(|n| Step::Enter(n * 3)),
        (0usize..8).prop_map(Step::Forget),
        Just(Step::TrySoon),
        Just(Step::AllDue),
        (1u64..5000).prop_map(Step::Wait),
    ]
}

proptest! {
    /// In every order, each attempt is taken at least once a period, and a client that renews
    /// nothing is not woken.
    #[test]
    fn each_attempt_is_taken_in_time(steps in vec(step(), 1..60)) {
        let (mut book, mut now) = (Book::default(), Instant::default());
        let mut there: Vec<(Arc<Kept>, Instant)> = Vec::new();
        for step in steps {
            match step {
                Step::Enter(seconds) => {
                    let (attempt, before) = (attempt(seconds), book.next_due());
                    let earlier = book.enter(&attempt, now);
                    prop_assert!(earlier == Some(true) || book.next_due() == before);
                    prop_assert!(book.next_due() <= now + attempt.period);
                    there.push((attempt, now));
                }
                Step::Forget(at) if at < there.len() => book.forget(&there.swap_remove(at).0),
                Step::Forget(_) => {}
                Step::TrySoon => book.try_soon(now),
                Step::AllDue => book.all_due(now),
                Step::Wait(ms) => {
                    let end = now + Duration::from_millis(ms);
                    while book.next_due() <= end {
                        now = now.max(book.next_due());
                        let due = book.groups_due(now);
                        prop_assert!(!due.is_empty());
                        let taken = book.take(&due, now);
                        let taken: BTreeSet<_> = taken.iter().map(|one| one.id).collect();
                        prop_assert!(book.next_due() > now, "it would not be at rest");
                        for (one, last) in &mut there {
                            prop_assert_eq!(taken.contains(&one.id), due.contains(&one.ttl));
                            if taken.contains(&one.id) {
                                *last = now;
                            }
                        }
                    }
                    now = end;
                }
            }
            for (one, last) in &there {
                prop_assert!(now.since(*last) <= one.period, "it is forgotten");
            }
            prop_assert_eq!(book.all().count(), there.len());
        }
        let left = book.close();
        prop_assert_eq!(left.len(), there.len());
        prop_assert!(book.is_closed() && book.enter(&attempt(3), now).is_none());
        prop_assert_eq!(book.next_due(), Instant::NEVER);
    }
}
