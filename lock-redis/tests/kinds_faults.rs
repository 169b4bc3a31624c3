//! Shared locks and permits among broken networks, dead holders, lost keys.

use std::time::Duration;

use lock_core::{Clock, DistributedLock, Kind, LossReason};

use crate::lab::*;

const TTL: Duration = Duration::from_secs(10);
const KINDS: [Kind; 2] = [Kind::Shared, Kind::Permit { weight: 1, limit: 3 }];

#[tokio::test]
async fn lost_answers_are_asked_for_again() {
    let (server, proxy, driver) = behind_a_proxy().await;
    for kind in KINDS {
        proxy.drop_next_reply();
        let one = acquire_as(kind, &driver, "orders", TTL).await.unwrap();
        proxy.drop_next_reply();
        let two = acquire_as(kind, &driver, "orders", TTL).await.unwrap();
        let queue = driver.inspect(&name("orders")).await.unwrap();
        let tokens: Vec<_> = queue.iter().map(|entry| entry.holder.token).collect();
        assert_eq!(tokens, [Some(one.token()), Some(two.token())]);
        for lease in [one, two] {
            proxy.drop_next_reply();
            lease.release().await.unwrap();
        }
        assert!(left_behind(&server).await.is_empty());
    }
}

/// A request that was overtaken by later ones of its attempt takes no effect.
#[tokio::test]
async fn a_conversion_that_comes_late_changes_nothing() {
    let (server, driver) = one_driver().await;
    let lease = acquire(&driver, "orders", TTL).await.unwrap();
    let before = lease.token();
    lease.downgrade().await.unwrap();
    assert!(lease.try_upgrade().await.unwrap());
    let ticket = server.command(&[b"GET", b"orders"]).await.unwrap();
    let late = lock_redis_script("convert");
    let queue = companion("orders", "queue");
    let token = before.value().to_string();
    let (ticket_now, token) = (ticket.as_bytes(), token.as_bytes());
    let call: &[&[u8]] =
        &[b"EVAL", late.as_bytes(), b"2", b"orders", &queue, ticket_now, token, b"s"];
    assert_eq!(server.command(call).await.unwrap(), "0");
    assert_eq!(server.command(&[b"GET", b"orders"]).await.unwrap(), ticket);
    lease.release().await.unwrap();
    nothing_is_left(&server).await;
}

/// A script as the driver puts it together.
fn lock_redis_script(name: &str) -> String {
    let part = |name: &str| {
        let path = format!("{}/src/wire/scripts/{name}.lua", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    };
    let whole = |line: &str| match line.strip_prefix("--@") {
        Some(parts) => parts.split(' ').map(|name| part(&format!("library/{name}"))).collect(),
        None => format!("{line}\n"),
    };
    part(name).lines().map(whole).collect()
}

#[tokio::test]
async fn a_lost_key_ends_all_its_holders_and_no_later_one() {
    let (server, driver) = one_driver().await;
    for kind in KINDS {
        let old = [(); 2].map(async |()| acquire_as(kind, &driver, "orders", TTL).await.unwrap());
        let [one, two] = old;
        let (one, two) = (one.await, two.await);
        server.command(&[b"DEL", b"orders"]).await.unwrap();
        let new = acquire_as(kind, &driver, "orders", TTL).await.unwrap();
        assert!(one.renew().await.is_err());
        one.release().await.unwrap();
        two.release().await.unwrap();
        assert!(two.renew().await.is_err());
        new.renew().await.unwrap();
        let queue = driver.inspect(&name("orders")).await.unwrap();
        assert_eq!(queue.len(), 1, "{queue:?}");
        new.release().await.unwrap();
        nothing_is_left(&server).await;
    }
}

#[tokio::test]
async fn a_key_that_a_foreign_client_overwrites_ends_all_its_holders() {
    let (server, driver) = one_driver().await;
    let ttl = Duration::from_secs(3);
    let one = acquire_as(Kind::Shared, &driver, "orders", ttl).await.unwrap();
    let two = acquire_as(Kind::Shared, &driver, "orders", ttl).await.unwrap();
    server.command(&[b"SET", b"orders", b"s:1", b"PX", b"60000"]).await.unwrap();
    for lease in [one, two] {
        assert_eq!(within(lease.validity().lost()).await, LossReason::EntryGone);
        lease.release().await.unwrap();
    }
    assert_eq!(server.command(&[b"GET", b"orders"]).await.unwrap(), "s:1");
    assert_eq!(left_behind(&server).await, ["orders"]);
}

/// If companions vanish alone, no waiter is stranded and no attempt is let in wrongly.
#[tokio::test]
async fn lost_companions_strand_no_waiter() {
    let (server, driver) = one_driver().await;
    let ttl = Duration::from_secs(3);
    for key in ["holders", "members"] {
        let one = acquire_as(permits(1, 2), &driver, "orders", ttl).await.unwrap();
        let two = acquire_as(permits(1, 2), &driver, "orders", ttl).await.unwrap();
        let waiter = Waiter::queued(&driver, &server, "orders", TTL).await;
        server.command(&[b"DEL", &companion("orders", key)]).await.unwrap();
        one.release().await.unwrap();
        two.release().await.unwrap();
        waiter.granted().await.release().await.unwrap();
        nothing_is_left(&server).await;
    }
}

/// No share ends before its holder has lost it, for any actions of the others, and dead ones still
/// go.
#[tokio::test]
async fn holders_outlive_the_record_of_their_expiry() {
    let (server, proxy, far, near) = far_and_near().await;
    let evict = async || {
        let evicted = server.command(&[b"DEL", &companion("orders", "holders")]).await.unwrap();
        assert_eq!(evicted, "1");
    };
    let ttl = Duration::from_secs(4);
    for kind in [Kind::Shared, permits(1, 3)] {
        let long = acquire_as(kind, &near, "orders", TTL * 6).await.unwrap();
        let short = acquire_as(kind, &near, "orders", TTL).await.unwrap();
        let third = acquire_as(kind, &near, "orders", TTL).await.unwrap();
        evict().await;
        short.renew().await.unwrap();
        let pttl = server.command(&[b"PTTL", b"orders"]).await.unwrap();
        assert!(pttl.parse::<u64>().unwrap() > 50_000, "{kind}: {pttl}");
        evict().await;
        short.release().await.unwrap();
        evict().await;
        server.command(&[b"CONFIG", b"SET", b"maxmemory", b"1"]).await.unwrap();
        third.renew().await.unwrap();
        server.command(&[b"CONFIG", b"SET", b"maxmemory", b"0"]).await.unwrap();
        assert_eq!(near.inspect(&name("orders")).await.unwrap().len(), 2);
        third.release().await.unwrap();
        long.renew().await.unwrap();
        assert!(is_contended(&try_acquire(&near, "orders", TTL).await));
        long.release().await.unwrap();

        let _dead = acquire_as(kind, &far, "orders", ttl).await.unwrap();
        let alive = acquire_as(kind, &near, "orders", ttl).await.unwrap();
        evict().await;
        proxy.cut();
        until(async || near.inspect(&name("orders")).await.unwrap().len() == 1).await;
        alive.release().await.unwrap();
        nothing_is_left(&server).await;
        proxy.heal();
    }
}

/// Others live on and keep the key alive. The next rounds of all of them are far away.
#[tokio::test]
async fn a_dead_holders_share_comes_back_within_its_ttl() {
    let (server, proxy, dying, near) = far_and_near().await;
    let ttl = Duration::from_secs(3);
    let _dead = acquire_as(permits(2, 3), &dying, "orders", ttl).await.unwrap();
    let alive = acquire_as(permits(1, 3), &near, "orders", TTL * 18).await.unwrap();
    let both = [
        Waiter::queued_as(permits(1, 3), &near, &server, "orders", TTL * 18).await,
        Waiter::queued_as(permits(1, 3), &near, &server, "orders", TTL * 18).await,
    ];
    let last = Waiter::queued_as(permits(1, 3), &near, &server, "orders", TTL * 18).await;
    proxy.cut();
    let cut = Clock::Boot.now();
    let [one, two] = both;
    let (one, two) = (one.granted().await, two.granted().await);
    let took = Clock::Boot.now().since(cut);
    assert!(took < TTL * 3, "{took:?}");
    assert!(!last.task.is_finished());
    one.release().await.unwrap();
    two.release().await.unwrap();
    last.granted().await.release().await.unwrap();
    alive.release().await.unwrap();
    nothing_is_left(&server).await;
}

/// A writer dies between readers that hold and a reader that waits. It does not stop that reader
/// any longer.
#[tokio::test]
async fn a_dead_writer_between_readers_is_passed_over_within_its_ttl() {
    let (server, proxy, dying, near) = far_and_near().await;
    let ttl = Duration::from_secs(3);
    let holds = acquire_as(Kind::Shared, &near, "orders", TTL * 18).await.unwrap();
    let dead = Waiter::queued(&dying, &server, "orders", ttl).await;
    let next = Waiter::queued_as(Kind::Shared, &near, &server, "orders", TTL * 18).await;
    proxy.cut();
    let cut = Clock::Boot.now();
    let lease = next.granted().await;
    let took = Clock::Boot.now().since(cut);
    assert!(took < TTL * 3, "{took:?}");
    assert!(is_unavailable(&dead.ended().await));
    lease.release().await.unwrap();
    holds.release().await.unwrap();
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn a_holder_that_is_cut_off_loses_before_its_share_is_given_away() {
    let (server, proxy, far, near) = far_and_near().await;
    let ttl = Duration::from_secs(1);
    let guard = lock_core::Locks::of(far).semaphore("orders", 2).unwrap().ttl(ttl);
    let guard = guard.acquire().await.unwrap();
    let alive = acquire_as(permits(1, 2), &near, "orders", TTL).await.unwrap();
    let waiter = Waiter::queued_as(permits(1, 2), &near, &server, "orders", TTL).await;
    proxy.cut();
    let lost = tokio::spawn({
        let lost = guard.lost();
        async move { (lost.await, Clock::Boot.now()) }
    });
    let next = waiter.granted().await;
    let granted = Clock::Boot.now();
    let (reason, told) = within(lost).await.unwrap();
    assert_eq!(reason, LossReason::Expired);
    assert!(told < granted, "told {:?} after", told.since(granted));
    alive.release().await.unwrap();
    next.release().await.unwrap();
}

#[tokio::test]
async fn lost_pushes_are_made_up_for_by_the_round() {
    let (server, proxy, far, near) = far_and_near().await;
    let lease = acquire(&near, "orders", TTL).await.unwrap();
    let ttl = Duration::from_secs(3);
    let one = Waiter::queued_as(Kind::Shared, &far, &server, "orders", ttl).await;
    let two = Waiter::queued_as(Kind::Shared, &far, &server, "orders", ttl).await;
    proxy.drop_next_reply();
    lease.release().await.unwrap();
    let (one, two) = (one.granted().await, two.granted().await);
    assert!(one.token() < two.token());
    for lease in [one, two] {
        assert!(far.clock().now() < lease.validity().until());
        lease.release().await.unwrap();
    }
    nothing_is_left(&server).await;
}

#[tokio::test]
async fn a_full_memory_stops_no_holder_and_no_hand_over() {
    let (server, driver) = one_driver().await;
    let one = acquire_as(Kind::Shared, &driver, "orders", TTL).await.unwrap();
    let two = acquire_as(Kind::Shared, &driver, "orders", TTL).await.unwrap();
    let writer = Waiter::queued(&driver, &server, "orders", TTL).await;
    let reader = Waiter::queued_as(Kind::Shared, &driver, &server, "orders", TTL).await;
    let other = acquire(&driver, "other", TTL).await.unwrap();
    server.command(&[b"CONFIG", b"SET", b"maxmemory", b"1"]).await.unwrap();
    let full = acquire_as(Kind::Shared, &driver, "third", Duration::from_millis(600)).await;
    assert!(is_unavailable(&full), "{full:?}");
    two.renew().await.unwrap();
    other.downgrade().await.unwrap();
    other.renew().await.unwrap();
    other.release().await.unwrap();
    one.release().await.unwrap();
    two.release().await.unwrap();
    writer.granted().await.release().await.unwrap();
    reader.granted().await.release().await.unwrap();
    nothing_is_left(&server).await;
}

/// A round of waiters alone, and a hand-over to another client.
#[tokio::test]
async fn a_full_memory_ends_no_wait_and_no_detaching() {
    let (server, near, far) = two_drivers().await;
    let ttl = Duration::from_secs(3);
    let held = acquire(&near, "orders", TTL * 18).await.unwrap();
    let reads = acquire_as(Kind::Shared, &near, "shared", TTL * 18).await.unwrap();
    let waiters = [
        Waiter::queued(&far, &server, "orders", ttl).await,
        Waiter::queued(&far, &server, "orders", ttl).await,
        Waiter::queued(&far, &server, "shared", ttl).await,
    ];
    let left = acquire(&near, "left", TTL * 18).await.unwrap();
    server.command(&[b"CONFIG", b"SET", b"maxmemory", b"1"]).await.unwrap();
    tokio::time::sleep(ttl * 2).await;
    left.detach().await.unwrap();
    held.release().await.unwrap();
    reads.release().await.unwrap();
    for waiter in waiters {
        waiter.granted().await.release().await.unwrap();
    }
}
