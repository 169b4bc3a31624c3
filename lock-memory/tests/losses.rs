//! Losing many locks at once, by virtual time.

use std::time::Duration;

use lock_core::{LockGuard, Locks, LossReason};
use lock_memory::MemoryStore;
use tokio::time::timeout;

const TTL: Duration = Duration::from_secs(2);
const HOLD: Duration = Duration::from_secs(30);
/// Time until a lost lock is given back: a twentieth of the TTL.
const MARGIN: Duration = Duration::from_millis(100);

fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

async fn hold_many(locks: &Locks, limit: Duration) -> Vec<LockGuard> {
    let mut held = Vec::new();
    for n in 0..1000 {
        let lock = locks.lock(format!("many-{n}")).unwrap().ttl(TTL).max_hold(limit);
        held.push(lock.acquire().await.unwrap());
    }
    held
}

#[tokio::test(start_paused = true)]
async fn a_thousand_locks_are_given_back_after_their_margin_without_a_task() {
    let store = MemoryStore::new();
    let locks = Locks::new(store.client());
    let held = hold_many(&locks, HOLD).await;
    let before = tasks();
    for guard in &held {
        assert_eq!(guard.lost().await, LossReason::MaxHold);
    }
    tokio::time::sleep(MARGIN / 2).await;
    assert_eq!((tasks() - before, store.contents().len()), (0, 1000));
    tokio::time::sleep(MARGIN).await;
    assert_eq!((tasks() - before, store.contents().len()), (0, 0));
}

/// From the first renewal on that has no answer, until one has.
#[tokio::test(start_paused = true)]
async fn a_holder_learns_that_its_renewals_fail() {
    let client = MemoryStore::new().client();
    let (faults, locks) = (client.faults(), Locks::new(client));
    let ttl = Duration::from_secs(15);
    let guard = locks.lock("a").unwrap().ttl(ttl).acquire().await.unwrap();
    let minute = Duration::from_secs(60);
    timeout(minute, guard.at_risk()).await.expect_err("every renewal is confirmed");
    assert!(!guard.is_at_risk());
    for _ in 0..3 {
        faults.partition();
        let left = timeout(minute, guard.at_risk()).await.expect("it is told");
        assert!(guard.is_at_risk() && guard.is_valid(), "{left:?}");
        assert!(left <= ttl * 3 / 8 && left > ttl / 8, "{left:?}");
        assert!(left >= guard.remaining(), "{left:?}");
        faults.heal();
        tokio::time::sleep(left).await;
        timeout(minute, guard.at_risk()).await.expect_err("it is renewed again");
        assert!(!guard.is_at_risk() && guard.is_valid());
    }
    faults.partition();
    guard.at_risk().await;
    assert_eq!(guard.lost().await, LossReason::Expired);
    assert!(!guard.is_at_risk(), "it is lost");
    timeout(minute, guard.at_risk()).await.expect_err("it is lost");
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_nothing_renews_is_not_at_risk() {
    let locks = Locks::new(MemoryStore::new().client());
    let ttl = Duration::from_secs(15);
    let guard = locks.lock("a").unwrap().ttl(ttl).fixed_term().acquire().await.unwrap();
    let risk = tokio::spawn(guard.at_risk());
    tokio::time::sleep(ttl - Duration::from_secs(1)).await;
    assert!(guard.is_valid() && !guard.is_at_risk() && !risk.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_short_margin_does_not_wait_for_a_long_one() {
    let store = MemoryStore::new();
    let locks = Locks::new(store.client());
    let left =
        || -> Vec<_> { store.contents().into_iter().map(|(name, _)| name.to_string()).collect() };
    let mut held = Vec::new();
    for (name, ttl) in [("long", TTL * 100), ("short", TTL)] {
        let lock = locks.lock(name).unwrap().ttl(ttl).max_hold(HOLD);
        held.push(lock.acquire().await.unwrap());
    }
    for guard in &held {
        assert_eq!(guard.lost().await, LossReason::MaxHold);
    }
    tokio::time::sleep(MARGIN * 2).await;
    assert_eq!(left(), ["long"]);
    tokio::time::sleep(MARGIN * 100).await;
    assert_eq!(left(), [""; 0]);
}

/// Its first renewal comes half of a TTL after its grant, since another lock set the beat.
#[tokio::test(start_paused = true)]
async fn a_lock_that_is_renewed_late_for_the_first_time_is_not_at_risk() {
    let client = MemoryStore::new().client();
    let (faults, locks) = (client.faults(), Locks::new(client));
    // A round trip of 400 ms.
    faults.delay(Duration::from_millis(200));
    let ttl = Duration::from_secs(15);
    // Asked for at 0 s: the renewals come at 5 s, 10 s ..
    let _first = locks.lock("a").unwrap().ttl(ttl).acquire().await.unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    // Granted at 2.6 s: too young at 5 s, renewed at 10 s, confirmed at 10.4 s.
    let second = locks.lock("b").unwrap().ttl(ttl).acquire().await.unwrap();
    timeout(ttl * 2, second.at_risk()).await.expect_err("every renewal is confirmed");
}
