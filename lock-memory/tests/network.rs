//! A slow network, and lost messages: to the millisecond, by virtual time.

use std::time::Duration;

use lock_core::{Clock, ConnectionState, Error, Instant, Kind, LossReason};
use lock_memory::{Faults, MemoryStore};

use crate::clients::{client, name};

const TTL: Duration = Duration::from_secs(15);
/// Delay of one way.
const WAY: Duration = Duration::from_millis(700);

fn now() -> Instant {
    Clock::Tokio.now()
}

/// Allows for tokio's timers, which count whole milliseconds.
#[track_caller]
fn assert_about(took: Duration, expected: Duration) {
    let late = took.checked_sub(expected).expect("not too early");
    assert!(late <= Duration::from_millis(5), "{took:?} instead of {expected:?}");
}

/// Waits until the store has an entry of any name, and returns when.
async fn arrival(store: MemoryStore) -> Instant {
    while store.contents().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    now()
}

type Fault = fn(&Faults);

#[tokio::test(start_paused = true)]
async fn a_slow_network_delays_requests_and_replies() {
    let set: [(Fault, u32, u32); 4] = [
        (|faults| faults.delay(WAY), 1, 1),
        (|faults| faults.delay_requests(WAY), 1, 0),
        (|faults| faults.delay_replies(WAY), 0, 1),
        (|faults| faults.delay(Duration::ZERO), 0, 0),
    ];
    for (fault, there, back) in set {
        let store = MemoryStore::new();
        let (locks, faults) = client(&store);
        fault(&faults);
        let (sent, arrived) = (now(), tokio::spawn(arrival(store.clone())));
        let guard = locks.lock("a").unwrap().acquire().await.unwrap();
        let got = now();
        assert_about(arrived.await.unwrap().since(sent), WAY * there);
        assert_about(got.since(sent), WAY * (there + back));
        let released = now();
        guard.release().await.unwrap();
        assert_about(now().since(released), WAY * (there + back));
    }
}

#[tokio::test(start_paused = true)]
async fn pushes_are_as_slow_as_replies_and_many_are_no_slower_than_one() {
    let store = MemoryStore::new();
    let ((locks, faults), (other, _)) = (client(&store), client(&store));
    let held = other.lock("a").unwrap().acquire().await.unwrap();
    let readers = (0..100).map(|_| tokio::spawn(locks.shared("a").unwrap().acquire()));
    let readers: Vec<_> = readers.collect();
    while store.contents()[0].1.len() <= readers.len() {
        tokio::task::yield_now().await;
    }
    faults.delay(WAY);
    let released = now();
    held.release().await.unwrap();
    let mut guards = Vec::new();
    for reader in readers {
        guards.push(reader.await.unwrap().unwrap());
    }
    assert_about(now().since(released), WAY);
}

#[tokio::test(start_paused = true)]
async fn changes_of_an_election_are_as_slow_and_come_in_order() {
    let store = MemoryStore::new();
    let ((locks, faults), (other, _)) = (client(&store), client(&store));
    let mut leading = other.election("head").unwrap().campaign("0").await.unwrap();
    let mut seen = locks.election("head").unwrap().observe().await.unwrap();
    let mut value = async || seen.next().await.unwrap().unwrap().unwrap().value;
    assert_eq!(value().await, b"0");
    faults.delay(WAY);
    let proclaimed = now();
    for n in 1..=10 {
        leading.proclaim(n.to_string()).await.unwrap();
    }
    for n in 1..=10 {
        assert_eq!(value().await, n.to_string().into_bytes());
        assert_about(now().since(proclaimed), WAY);
    }
    // After a cut only the newest counts.
    faults.cut_replies();
    leading.proclaim("old").await.unwrap();
    leading.proclaim("new").await.unwrap();
    tokio::time::sleep(WAY * 2).await;
    faults.heal();
    assert_eq!(value().await, b"new");
}

#[tokio::test(start_paused = true)]
async fn a_heal_lets_arrive_what_is_on_its_way_and_a_cut_stops_it() {
    let store = MemoryStore::new();
    let (locks, faults) = client(&store);
    faults.delay(WAY * 1000);
    let lock = locks.lock("a").unwrap().ttl(TTL);
    let acquired = tokio::spawn(lock.acquire());
    tokio::time::sleep(WAY).await;
    let healed = now();
    faults.heal();
    let guard = acquired.await.unwrap().unwrap();
    assert_about(now().since(healed), Duration::ZERO);
    faults.delay(WAY);
    let released = tokio::spawn(guard.release());
    tokio::time::sleep(WAY / 2).await;
    faults.partition();
    tokio::time::sleep(WAY * 3).await;
    assert_eq!(store.contents().len(), 1, "cut before it arrived");
    faults.heal();
    released.await.unwrap().unwrap();
    assert_eq!(store.contents(), []);
}

/// A lost request has not reached the store. A request with a lost reply has taken effect.
#[tokio::test(start_paused = true)]
async fn a_lost_message_is_sent_again_and_has_one_effect() {
    let both: Fault = |faults| {
        faults.lose_request();
        faults.lose_reply();
    };
    let set: [(Fault, u32, u32); 3] =
        [(Faults::lose_request, 3, 2), (Faults::lose_reply, 1, 2), (both, 3, 3)];
    for (fault, ways_to_effect, tries) in set {
        let store = MemoryStore::new();
        let (locks, faults) = client(&store);
        faults.delay(WAY);
        fault(&faults);
        let (sent, arrived) = (now(), tokio::spawn(arrival(store.clone())));
        let guard = locks.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
        assert_about(now().since(sent), WAY * 2 * tries);
        assert_about(arrived.await.unwrap().since(sent), WAY * ways_to_effect);
        let contents = store.contents();
        assert_eq!((contents.len(), contents[0].1.len()), (1, 1), "one entry for one attempt");
        assert_eq!(contents[0].1[0].holder.token, Some(guard.token()));
        fault(&faults);
        guard.renew().await.unwrap();
        fault(&faults);
        guard.release().await.unwrap();
        assert_eq!(store.contents(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_after_the_limit_leaves_nothing_behind() {
    for replies_only in [false, true] {
        let store = MemoryStore::new();
        let (locks, faults) = client(&store);
        match replies_only {
            true => faults.delay_replies(TTL * 2),
            false => faults.delay_requests(TTL * 2),
        }
        let lock = locks.lock("a").unwrap().ttl(TTL);
        let began = now();
        let late = lock.acquire().await;
        assert!(matches!(late, Err(Error::Unavailable { op: "acquire", .. })), "{late:?}");
        assert!(now().since(began) >= TTL);
        assert!(matches!(locks.connection(), ConnectionState::Disconnected(_)));
        faults.heal();
        let guard = lock.acquire().await.unwrap();
        assert_eq!(locks.connection(), ConnectionState::Connected);
        guard.release().await.unwrap();
        // Nothing arrives late.
        tokio::time::sleep(TTL * 4).await;
        assert_eq!(store.contents(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn renewals_bear_a_slow_network_up_to_a_third_of_the_ttl() {
    let (locks, faults) = client(&MemoryStore::new());
    let lock = locks.lock("a").unwrap().ttl(TTL);
    let guard = lock.acquire().await.unwrap();
    faults.delay(TTL / 7);
    assert!(tokio::time::timeout(TTL * 10, guard.lost()).await.is_err());
    faults.delay(TTL / 5);
    assert_eq!(guard.lost().await, LossReason::Expired);
}

#[tokio::test(start_paused = true)]
async fn a_client_loses_its_locks_and_no_other_client_does() {
    let store = MemoryStore::new();
    let ((locks, faults), (other, _)) = (client(&store), client(&store));
    let mine = locks.shared("a").unwrap().acquire().await.unwrap();
    let again = locks.shared("a").unwrap().acquire().await.unwrap();
    let theirs = other.shared("a").unwrap().acquire().await.unwrap();
    let elsewhere = locks.lock("b").unwrap().acquire().await.unwrap();
    let waiting = tokio::spawn(locks.lock("a").unwrap().acquire());
    while store.contents()[0].1.len() < 4 {
        tokio::task::yield_now().await;
    }
    assert_eq!(faults.lose(&name("c")), 0);
    assert_eq!(faults.lose(mine.name()), 2);
    assert_eq!((mine.lost().await, again.lost().await), {
        (LossReason::EntryGone, LossReason::EntryGone)
    });
    assert!(!mine.is_valid() && theirs.is_valid() && elsewhere.is_valid());
    assert!(matches!(mine.release().await, Err(Error::Lost { .. })));
    theirs.release().await.unwrap();
    let writer = waiting.await.unwrap().unwrap();
    assert_eq!(writer.kind(), Kind::Exclusive);
    // Leaderships are grants, too.
    let leading = locks.election("head").unwrap().campaign("me").await.unwrap();
    assert_eq!(faults.lose(leading.name()), 1);
    assert_eq!(leading.lost().await, LossReason::EntryGone);
}

#[tokio::test(start_paused = true)]
async fn the_push_of_a_loss_takes_as_long_as_a_reply() {
    let store = MemoryStore::new();
    let (locks, faults) = client(&store);
    let guard = locks.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
    faults.delay_replies(WAY);
    let taken = now();
    assert_eq!(faults.lose(guard.name()), 1);
    assert_eq!(store.contents(), []);
    assert!(guard.is_valid(), "not told yet");
    assert_eq!(guard.lost().await, LossReason::EntryGone);
    assert_about(now().since(taken), WAY);
    drop(locks);
    drop(guard);
    while !store.faults().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(faults.lose(&name("a")), 0, "the client is gone");
}

#[tokio::test(start_paused = true)]
async fn a_revocation_with_a_lost_reply_is_reported_as_done() {
    let store = MemoryStore::new();
    let (holder, _) = client(&store);
    let (operator, faults) = client(&store);
    let guard = holder.lock("a").unwrap().acquire().await.unwrap();
    let attempt = operator.inspect("a").await.unwrap()[0].attempt.unwrap();
    faults.lose_reply();
    assert!(operator.revoke("a", attempt).await.unwrap());
    assert_eq!(guard.lost().await, LossReason::EntryGone);
    assert!(!operator.revoke("a", attempt).await.unwrap(), "there is none any more");
}

#[tokio::test(start_paused = true)]
async fn a_close_takes_as_long_as_its_network() {
    let store = MemoryStore::new();
    let (locks, faults) = client(&store);
    let guard = locks.lock("a").unwrap().acquire().await.unwrap();
    faults.delay(WAY);
    let began = now();
    locks.close().await.unwrap();
    assert_about(now().since(began), WAY * 2);
    assert!(store.contents().is_empty());
    assert_eq!(guard.lost().await, LossReason::Closed);
}

#[tokio::test(start_paused = true)]
async fn a_close_behind_a_cut_is_not_confirmed_and_the_lock_is_free_after_its_ttl() {
    let store = MemoryStore::new();
    let (locks, faults) = client(&store);
    let (other, _) = client(&store);
    let guard = locks.lock("a").unwrap().ttl(TTL).acquire().await.unwrap();
    faults.partition();
    let told = locks.close().await.unwrap_err();
    assert!(matches!(told, Error::Unavailable { op: "close", .. }), "{told}");
    assert!(!guard.is_valid());
    assert!(other.lock("a").unwrap().try_acquire().await.unwrap().is_none());
    let next = tokio::time::timeout(TTL + WAY, other.lock("a").unwrap().acquire());
    drop(next.await.expect("it is free after its TTL").unwrap());
}
