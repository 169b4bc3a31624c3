//! Due times of attempts, in random orders of steps.

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{LockName, Request};

/// An attempt with one of three TTLs.
struct Plain(Progress);

impl Deref for Plain {
    type Target = Progress;

    fn deref(&self) -> &Progress {
        &self.0
    }
}

fn attempt(seconds: u64) -> Arc<Plain> {
    let ttl = Duration::from_secs(seconds);
    let request = Request::new(LockName::new("orders").unwrap(), ttl);
    Arc::new(Plain(Progress::new(Uuid::new_v4(), &request, ttl / 3, ())))
}

#[derive(Clone, Debug)]
enum Step {
    Enter(u64),
    Forget(usize),
    TrySoon,
    AllDue,
    /// This many milliseconds pass, and due attempts are renewed.
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
    /// In every order, each attempt is renewed at least once a period, and a client that renews
    /// nothing is not woken.
    #[test]
    fn each_attempt_is_renewed_in_time(steps in vec(step(), 1..60)) {
        let (mut attempts, mut now) = (Attempts::default(), Instant::default());
        let mut there: Vec<(Arc<Plain>, Instant)> = Vec::new();
        for step in steps {
            match step {
                Step::Enter(seconds) => {
                    let (attempt, before) = (attempt(seconds), attempts.next_due());
                    let earlier = attempts.enter(&attempt, now);
                    prop_assert!(earlier == Some(true) || attempts.next_due() == before);
                    prop_assert!(attempts.next_due() <= now + attempt.period);
                    there.push((attempt, now));
                }
                Step::Forget(at) if at < there.len() => attempts.forget(&there.swap_remove(at).0),
                Step::Forget(_) => {}
                Step::TrySoon => attempts.try_soon(now),
                Step::AllDue => attempts.all_due(now),
                Step::Wait(ms) => {
                    let end = now + Duration::from_millis(ms);
                    while attempts.next_due() <= end {
                        now = now.max(attempts.next_due());
                        let due = attempts.groups_due(now);
                        prop_assert!(!due.is_empty());
                        let renewed = attempts.reschedule(&due, now);
                        let renewed: BTreeSet<_> = renewed.iter().map(|one| one.id).collect();
                        prop_assert!(attempts.next_due() > now, "it would not be at rest");
                        for (one, last) in &mut there {
                            prop_assert_eq!(renewed.contains(&one.id), due.contains(&one.ttl));
                            if renewed.contains(&one.id) {
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
            prop_assert_eq!(attempts.all().count(), there.len());
        }
        let left = attempts.close();
        prop_assert_eq!(left.len(), there.len());
        prop_assert!(attempts.is_closed() && attempts.enter(&attempt(3), now).is_none());
        prop_assert_eq!(attempts.next_due(), Instant::NEVER);
    }
}

#[test]
fn a_close_returns_the_attempts_in_the_order_in_which_they_came() {
    let mut attempts = Attempts::default();
    let came: Vec<_> = (0..100).map(|_| attempt(3)).collect();
    came.iter().for_each(|one| assert!(attempts.enter(one, Instant::default()).is_some()));
    attempts.forget(&came[7]);
    let left = attempts.close().into_iter().map(|one| one.id);
    let stayed = came.iter().map(|one| one.id).filter(|id| *id != came[7].id);
    assert!(left.eq(stayed));
}
