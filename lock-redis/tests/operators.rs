//! Names in use, and revoked locks.

use std::time::Duration;

use lock_core::{DistributedLock, Effect, Error, Kind, LossReason};
use lock_redis::RedisLock;
use uuid::Uuid;

use crate::lab::*;

/// So long that no round shows it while a test waits.
const TTL: Duration = Duration::from_secs(600);
const AT_ONCE: Duration = Duration::from_secs(15);

async fn names(driver: &RedisLock, prefix: &str) -> Vec<String> {
    let names = within(driver.names(prefix)).await.unwrap();
    names.iter().map(|name| name.as_str().to_owned()).collect()
}

/// Returns the attempts that the server shows, holders first.
async fn attempts(driver: &RedisLock, lock: &str) -> Vec<Uuid> {
    let queue = driver.inspect(&name(lock)).await.unwrap();
    queue.iter().filter_map(|entry| entry.attempt).collect()
}

#[tokio::test]
async fn names_are_listed_by_prefix_in_every_layout() {
    let server = server().await;
    for options in ["prefix=a*%5Bx", "prefix=app:&layout=native", "mode=simple", "prefix=."] {
        let driver = driver(&format!("{}?{options}", server.url())).await;
        let mut leases = Vec::new();
        for lock in ["orders/1", "orders/2", "orders", ".", "..", ".x", "a}b", "{u}1"] {
            leases.push(acquire(&driver, lock, TTL).await.unwrap());
        }
        let all = [".", "..", ".x", "a}b", "orders", "orders/1", "orders/2", "{u}1"];
        assert_eq!(names(&driver, "").await, all, "{options}");
        assert_eq!(names(&driver, "orders/").await, all[5..7], "{options}");
        assert_eq!(names(&driver, ".").await, all[..3], "{options}");
        assert_eq!(names(&driver, "Orders").await, [""; 0], "{options}");
        assert_eq!(names(&driver, &"o".repeat(600)).await, [""; 0], "{options}");
        for lease in leases {
            lease.release().await.unwrap();
        }
        assert_eq!(names(&driver, "").await, [""; 0], "{options}");
    }
}

#[tokio::test]
async fn other_prefixes_and_companions_are_no_names_and_foreign_locks_are() {
    let server = server().await;
    let (driver, other) =
        (driver(&format!("{}?prefix=app:", server.url())).await, driver(&server.url()).await);
    let _other = acquire(&other, "orders", TTL).await.unwrap();
    let _reader = acquire_as(Kind::Shared, &driver, "read", TTL).await.unwrap();
    let _held = acquire(&driver, "held", TTL).await.unwrap();
    let _waits = Waiter::queued(&driver, &server, "app:held", TTL);
    server.command(&[b"SET", b"app:foreign", b"x", b"PX", b"60000"]).await.unwrap();
    server.command(&[b"HSET", b"app:redisson", b"x", b"1"]).await.unwrap();
    assert_eq!(names(&driver, "").await, ["foreign", "held", "read", "redisson"]);
}

/// A text that this library has not written stops neither the job nor the list.
#[tokio::test]
async fn a_text_that_is_no_mark_counts_as_none() {
    let server = server().await;
    let driver = driver(&format!("{}?prefix=app:", server.url())).await;
    server.command(&[b"SET", b"{app:odd}\xffdone", b"odd"]).await.unwrap();
    assert_eq!(within(driver.mark(&name("odd"))).await.unwrap(), None);
    assert!(within(driver.marks("")).await.unwrap().is_empty());
    assert!(within(driver.clear_mark(&name("odd"))).await.unwrap());
}

#[tokio::test]
async fn a_name_with_only_a_waiter_counts_if_the_waiter_is_alive() {
    let (server, driver) = one_driver().await;
    let lease = acquire(&driver, "orders", TTL).await.unwrap();
    let waiter = Waiter::queued(&driver, &server, "orders", TTL).await;
    server.command(&[b"DEL", b"orders"]).await.unwrap();
    server.command(&[b"RPUSH", &companion("dead", "queue"), b"nobody"]).await.unwrap();
    assert_eq!(names(&driver, "").await, ["orders"]);
    lease.release().await.unwrap();
    waiter.granted().await.release().await.unwrap();
}

#[tokio::test]
async fn holders_of_every_kind_are_told_and_the_next_is_served() {
    let (server, mine, theirs) = two_drivers().await;
    for kind in [Kind::Exclusive, Kind::Shared, permits(1, 1)] {
        let victim = acquire_as(kind, &theirs, "orders", TTL).await.unwrap();
        let next = Waiter::queued(&mine, &server, "orders", TTL).await;
        let attempt = attempts(&mine, "orders").await[0];
        assert!(mine.revoke(&name("orders"), attempt).await.unwrap());
        let told = tokio::time::timeout(AT_ONCE, victim.validity().lost()).await;
        assert_eq!(told, Ok(LossReason::EntryGone), "{kind}");
        let next = next.granted().await;
        assert!(!mine.revoke(&name("orders"), attempt).await.unwrap());
        // A late release of a lock that it does not hold any more.
        victim.release().await.unwrap();
        next.renew().await.unwrap();
        next.release().await.unwrap();
        nothing_is_left(&server).await;
    }
}

#[tokio::test]
async fn one_of_several_holders_is_removed_and_the_others_stay() {
    let (server, mine, theirs) = two_drivers().await;
    let victim = acquire_as(permits(2, 3), &theirs, "orders", TTL).await.unwrap();
    let stays = acquire_as(permits(1, 3), &theirs, "orders", TTL).await.unwrap();
    let next = Waiter::queued_as(permits(2, 3), &mine, &server, "orders", TTL).await;
    let attempt = attempts(&mine, "orders").await[0];
    assert!(mine.revoke(&name("orders"), attempt).await.unwrap());
    within(victim.validity().lost()).await;
    next.granted().await.release().await.unwrap();
    assert!(!stays.validity().has_ended());
    stays.renew().await.unwrap();
    stays.release().await.unwrap();
    nothing_is_left(&server).await;
}

/// When a writer between readers is removed, the next reader is let in.
#[tokio::test]
async fn a_revoked_waiter_ends_and_the_next_one_that_fits_enters() {
    let (server, mine, theirs) = two_drivers().await;
    let holds = acquire_as(Kind::Shared, &mine, "orders", TTL).await.unwrap();
    let victim = Waiter::queued(&theirs, &server, "orders", TTL).await;
    let next = Waiter::queued_as(Kind::Shared, &theirs, &server, "orders", TTL).await;
    assert!(mine.revoke(&name("orders"), victim.attempt.id()).await.unwrap());
    let told = tokio::time::timeout(AT_ONCE, victim.ended()).await.unwrap();
    assert!(lost_its_place(&told), "{told:?}");
    next.granted().await.release().await.unwrap();
    holds.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn a_victim_in_the_simple_mode_ends_at_its_next_renewal() {
    let server = server().await;
    let simple = driver(&format!("{}?mode=simple", server.url())).await;
    let queue = driver(&server.url()).await;
    for operator in [&simple, &queue] {
        let ttl = Duration::from_secs(24);
        let victim = acquire(&simple, "orders", ttl).await.unwrap();
        let attempt = attempts(operator, "orders").await[0];
        assert!(operator.revoke(&name("orders"), attempt).await.unwrap());
        let told = tokio::time::timeout(ttl / 4, victim.validity().lost()).await;
        assert_eq!(told, Ok(LossReason::EntryGone));
        nothing_is_left(&server).await;
    }
}

/// The effect of the first request is unknown then.
#[tokio::test]
async fn a_revoke_with_a_lost_answer_has_an_unknown_effect() {
    let (server, proxy, far, near) = far_and_near().await;
    warm(&near).await;
    let victim = acquire(&near, "orders", TTL).await.unwrap();
    let attempt = attempts(&near, "orders").await[0];
    proxy.drop_next_reply();
    let told = within(far.revoke(&name("orders"), attempt)).await;
    let unknown = |error: &Error| error.effect() == Effect::Unknown;
    assert!(is_unavailable(&told) && told.as_ref().is_err_and(unknown), "{told:?}");
    assert_eq!(within(victim.validity().lost()).await, LossReason::EntryGone);
    assert!(!within(far.revoke(&name("orders"), attempt)).await.unwrap());
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn no_other_holder_is_revoked() {
    let (server, driver) = one_driver().await;
    let attempt = Uuid::new_v4();
    assert!(!driver.revoke(&name("orders"), attempt).await.unwrap());
    // A foreign value with the same end as a ticket of this attempt.
    let value = attempt.simple().to_string();
    server.command(&[b"SET", b"orders", value.as_bytes(), b"PX", b"60000"]).await.unwrap();
    assert!(!driver.revoke(&name("orders"), attempt).await.unwrap());
    server.command(&[b"DEL", b"orders"]).await.unwrap();
    server.command(&[b"HSET", b"orders", b"redisson", b"1"]).await.unwrap();
    assert!(!driver.revoke(&name("orders"), attempt).await.unwrap());
    assert_eq!(server.command(&[b"TYPE", b"orders"]).await.unwrap(), "hash");
}

/// The time for descriptions ends; the connection, on which locks rely, does not.
#[tokio::test]
async fn a_look_at_many_clients_ends_no_connection() {
    let (server, proxy, far) = behind_a_proxy().await;
    let mut clients = Vec::new();
    let mut held = Vec::new();
    for _ in 0..60 {
        let client = driver(&server.url()).await;
        held.push(acquire_as(Kind::Shared, &client, "orders", PATIENCE * 3).await.unwrap());
        clients.push(client);
    }
    let before = proxy.stats().connections_total;
    // 60 questions one after the other would take 6 s.
    proxy.delay(Duration::from_millis(50));
    assert_eq!(within(far.inspect(&name("orders"))).await.unwrap().len(), 60);
    proxy.delay(Duration::ZERO);
    // On the connection that is there by now.
    acquire(&far, "other", PATIENCE).await.unwrap().release().await.unwrap();
    assert_eq!(proxy.stats().connections_total, before);
}
