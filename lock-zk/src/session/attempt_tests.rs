use std::time::Duration;

use futures_util::FutureExt;
use lock_core::{Instant, LockName};

use super::*;

fn attempt(kind: Kind) -> Attempt {
    let mut request = Request::new(LockName::new("a").unwrap(), Duration::from_secs(1));
    request.kind = kind;
    Attempt::new(Uuid::new_v4(), request)
}

fn held() -> (Attempt, Validity) {
    let attempt = attempt(Kind::Exclusive);
    let validity = Validity::new(&LockName::new("a").unwrap(), Instant::NEVER);
    assert!(attempt.hold(validity.clone()));
    (attempt, validity)
}

#[tokio::test]
async fn a_release_passes_the_lock_on_once() {
    let (attempt, validity) = held();
    assert!(attempt.pass());
    attempt.gone();
    assert_eq!(attempt.news(None).await, News::Passed);
    assert_eq!(validity.loss(), None);
}

#[tokio::test]
async fn a_deleted_holder_is_told_and_passes_nothing_on() {
    let (attempt, validity) = held();
    attempt.gone();
    assert!(!attempt.pass());
    assert_eq!(attempt.news(None).await, News::Gone);
    assert_eq!(validity.loss(), Some(LossReason::EntryGone));
}

#[test]
fn a_deleted_waiter_is_never_granted() {
    let attempt = attempt(Kind::Exclusive);
    attempt.gone();
    assert!(!attempt.hold(Validity::new(&LockName::new("a").unwrap(), Instant::NEVER)));
}

#[tokio::test]
async fn a_waiter_learns_that_the_holder_shares_the_lock() {
    let (attempt, _) = held();
    let (reader, writer) = (attempt.news(Some(Became::Shared)), attempt.news(None));
    tokio::pin!(reader, writer);
    assert!(reader.as_mut().now_or_never().is_none());
    attempt.downgrade();
    assert_eq!(reader.await, News::Became(Became::Shared));
    assert!(writer.as_mut().now_or_never().is_none());
    attempt.pass();
    assert_eq!(writer.await, News::Passed);
}

#[tokio::test]
async fn a_waiter_learns_that_permits_are_granted() {
    let attempt = attempt(Kind::Permit { weight: 1, limit: 2 });
    let next = attempt.news(Some(Became::Admitted));
    tokio::pin!(next);
    assert!(next.as_mut().now_or_never().is_none());
    assert!(attempt.hold(Validity::new(&LockName::new("a").unwrap(), Instant::NEVER)));
    assert_eq!(next.await, News::Became(Became::Admitted));
}

#[test]
fn a_node_is_right_behind_another_if_no_new_directory_can_have_come_so_far() {
    let node = |sequence, token| {
        let (path, token) = ("/locks/a/_c_x-lock-".to_owned(), FencingToken::new(token));
        Node { path, sequence, token }
    };
    let other = node(7, 1000);
    for (own, expected) in [
        (node(8, 1001), true),
        (node(8, 1007), true),
        // Deleted, made anew, and numbered up to 7 again: nine transactions in between.
        (node(8, 1010), false),
        (node(8, 1 << 40), false),
        (node(9, 1002), false),
        (node(7, 1001), false),
        // A server that has forgotten what it had confirmed.
        (node(8, 999), false),
    ] {
        assert_eq!(own.is_right_behind(&other), expected, "{own:?}");
    }
    // Numbers that no entry of ours has.
    assert!(!node(i32::MIN, 1001).is_right_behind(&node(i32::MAX, 1000)));
    assert!(!node(-6, 1001).is_right_behind(&node(-7, 1000)));
}

#[test]
fn an_attempt_that_begins_again_does_not_own_its_earlier_node() {
    let (earlier, later) = ("_c_x-lock-0000000001", "_c_x-lock-0000000007");
    let path = format!("/locks/a/{later}");
    let node = || Node { path: path.clone(), sequence: 7, token: FencingToken::new(7) };
    let first = attempt(Kind::Exclusive);
    assert!(first.may_own(earlier), "its creation may not be answered yet");
    let second = attempt(Kind::Exclusive);
    second.begin_again();
    assert!(!second.may_own(earlier) && !second.may_own(later), "it may be either");
    second.created(node());
    assert!(second.may_own(later) && !second.may_own(earlier));
}
