//! Detaching a lock for another process: conditions, errors, and the fate of the lock. By virtual
//! time.

use std::time::Duration;

use lock_core::{Error, Lock, LockGuard, Locks, LossReason, Owner, Ticket};
use lock_memory::MemoryStore;

use crate::clients::client;

const TTL: Duration = Duration::from_secs(4);

fn lock(locks: &Locks) -> Lock {
    locks.lock("job").unwrap().ttl(TTL)
}

async fn nothing_is_left(store: &MemoryStore) {
    while !store.contents().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_guard_is_invalid_before_the_request_is_sent_and_reports_no_loss() {
    let (locks, faults) = client(&MemoryStore::new());
    let guard = lock(&locks).acquire().await.unwrap();
    let (held, lost) = (guard.held(), guard.lost());
    faults.partition();
    let detach = guard.detach();
    tokio::pin!(detach);
    let pending = std::future::poll_fn(|cx| std::task::Poll::Ready(detach.as_mut().poll(cx)));
    assert!(pending.await.is_pending());
    assert!(!held.is_valid() && held.remaining().is_zero());
    faults.heal();
    detach.await.unwrap();
    // No loss is reported, as after a release.
    assert!(tokio::time::timeout(TTL * 3, lost).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_detach_without_an_answer_gives_no_ticket_and_the_lock_is_free_after_its_ttl() {
    let store = MemoryStore::new();
    let (locks, faults) = client(&store);
    for replies_only in [false, true] {
        let guard = lock(&locks).acquire().await.unwrap();
        if replies_only {
            faults.cut_replies()
        } else {
            faults.partition()
        };
        let failed = guard.detach().await;
        assert!(matches!(failed, Err(Error::Unavailable { op: "detach", .. })), "{failed:?}");
        faults.heal();
        tokio::time::sleep(TTL).await;
        assert_eq!(store.contents(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_was_paused_past_its_deadline_cannot_detach() {
    let (locks, _) = client(&MemoryStore::new());
    let guard = lock(&locks).acquire().await.unwrap();
    // Nothing runs while the clock jumps: a process that was stopped.
    tokio::time::advance(TTL).await;
    let late = guard.detach().await;
    assert!(matches!(late, Err(Error::Lost { reason: LossReason::Expired, .. })), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_not_exclusive_to_one_guard_is_refused_and_given_back() {
    let store = MemoryStore::new();
    let (locks, _) = client(&store);
    let shared = locks.shared("job").unwrap().acquire().await.unwrap();
    let permit = locks.semaphore("permits", 2).unwrap().acquire().await.unwrap();
    for guard in [shared, permit] {
        let refused = guard.detach().await;
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
    }
    nothing_is_left(&store).await;
    let owned = lock(&locks).owner(&Owner::new());
    let (first, again) = (owned.acquire().await.unwrap(), owned.acquire().await.unwrap());
    let refused = first.detach().await;
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
    assert!(again.is_valid(), "the other guard holds it still");
    again.detach().await.unwrap();
    // The owner does not hold it any more.
    assert!(owned.try_acquire().await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_ticket_of_another_store_or_place_is_refused() {
    let (locks, _) = client(&MemoryStore::new());
    let ticket = lock(&locks).acquire().await.unwrap().detach().await.unwrap().to_string();
    let refused = async |text: String| match locks.adopt(&text.parse::<Ticket>().unwrap()).await {
        Err(Error::InvalidOption { option, .. }) => option,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(ticket.replacen("memory", "etcd", 1)).await, "ticket");
    let (before, _) = ticket.rsplit_once(':').unwrap();
    assert_eq!(refused(format!("{before}:elsewhere")).await, "ticket");
    assert_eq!(refused(ticket.replacen(":4000000:", ":1:", 1)).await, "ttl");
    // Another server of the same kind has no such lock.
    let (other, _) = client(&MemoryStore::new());
    let gone = other.adopt(&ticket.parse().unwrap()).await;
    assert!(matches!(gone, Err(Error::Lost { reason: LossReason::TicketOver, .. })), "{gone:?}");
    locks.adopt(&ticket.parse().unwrap()).await.unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_dropped_adoption_gives_the_lock_back() {
    let store = MemoryStore::new();
    let (locks, faults) = client(&store);
    let ticket = lock(&locks).acquire().await.unwrap().detach().await.unwrap();
    faults.cut_replies();
    assert!(tokio::time::timeout(TTL / 8, locks.adopt(&ticket)).await.is_err());
    faults.heal();
    nothing_is_left(&store).await;
}

#[tokio::test(start_paused = true)]
async fn terms_and_limits_go_on_after_an_adoption() {
    let store = MemoryStore::new();
    let (locks, _) = client(&store);
    let adopt = async |guard: LockGuard| {
        let ticket = guard.detach().await.unwrap();
        tokio::time::sleep(TTL / 2).await;
        locks.adopt(&ticket).await.unwrap()
    };
    let fixed = adopt(lock(&locks).fixed_term().acquire().await.unwrap()).await;
    assert!(fixed.remaining() > TTL / 2, "a term of its own");
    assert_eq!(fixed.lost().await, LossReason::TermOver);
    tokio::time::sleep(TTL).await;
    assert_eq!(store.contents(), []);
    let limited = lock(&locks).max_hold(TTL * 2).acquire().await.unwrap();
    tokio::time::sleep(TTL).await;
    let limited = adopt(limited).await;
    tokio::time::sleep(TTL * 3 / 4).await;
    assert!(limited.is_valid());
    tokio::time::sleep(TTL / 2).await;
    assert_eq!(limited.lost().await, LossReason::MaxHold);
}

#[tokio::test(start_paused = true)]
async fn a_closed_client_neither_detaches_nor_adopts() {
    let store = MemoryStore::new();
    let ((locks, _), (other, _)) = (client(&store), client(&store));
    let ticket = lock(&locks).acquire().await.unwrap().detach().await.unwrap();
    let guard = locks.lock("more").unwrap().acquire().await.unwrap();
    locks.close().await.unwrap();
    assert!(matches!(locks.adopt(&ticket).await, Err(Error::Closed { .. })));
    assert!(matches!(guard.detach().await, Err(Error::Lost { .. })));
    assert!(other.adopt(&ticket).await.unwrap().is_valid());
}

#[test]
fn a_program_without_async_hands_a_lock_over() {
    let open = || lock_core::blocking::Locks::open(connect());
    let (old, new) = (open().unwrap(), open().unwrap());
    let guard = old.lock("job").unwrap().acquire().unwrap();
    let token = guard.token();
    let ticket = guard.detach().unwrap();
    old.close().unwrap();
    let guard = new.adopt(&ticket).unwrap();
    assert_eq!((guard.token(), guard.facts().iter().count()), (token, 0));
    assert!(new.adopt(&ticket).is_err());
    guard.release().unwrap();
}

async fn connect() -> lock_core::Result<Locks> {
    let config = lock_memory::MemoryConfig::new("detach");
    lock_memory::MemoryLock::connect(config).await.map(Locks::new)
}
