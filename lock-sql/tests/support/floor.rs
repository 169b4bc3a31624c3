//! The effects of a raise of the token floor.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use lock_core::{Error, FencingToken, LockGuard, Locks, LossReason};

use super::eventually;

const TTL: Duration = Duration::from_secs(20);

async fn hold(locks: &Locks) -> LockGuard {
    locks.lock("x").unwrap().ttl(TTL).acquire().await.unwrap()
}

async fn is_free(locks: &Locks) {
    eventually("it is free", async || locks.inspect("x").await.unwrap().is_empty()).await;
}

/// Two clients hand a lock to each other by tickets, until they are told to stop or one of them
/// fails.
async fn hand_to_hand(
    mut clients: [Locks; 2],
    stop: Arc<AtomicBool>,
    turns: Arc<AtomicUsize>,
) -> Result<LockGuard, Error> {
    let mut guard = hold(&clients[1]).await;
    while !stop.load(Ordering::SeqCst) {
        let ticket = guard.detach().await?;
        guard = clients[0].adopt(&ticket).await?;
        clients.swap(0, 1);
        turns.fetch_add(1, Ordering::SeqCst);
    }
    Ok(guard)
}

pub async fn a_raise_ends_a_lock_that_goes_from_hand_to_hand(clients: [Locks; 2], operator: Locks) {
    for _ in 0..8 {
        let (stop, turns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let hands = tokio::spawn(hand_to_hand(clients.clone(), stop.clone(), turns.clone()));
        eventually("it goes on", async || turns.load(Ordering::SeqCst) > 10).await;
        let newest = operator.token_floor().await.unwrap().newest.value();
        let floor = FencingToken::new(newest + 1000);
        operator.raise_token_floor(floor).await.unwrap();
        let left = operator.inspect("x").await.unwrap();
        assert!(left.is_empty(), "{left:?}, {floor}");
        stop.store(true, Ordering::SeqCst);
        match hands.await.unwrap() {
            Ok(guard) => assert_eq!(guard.lost().await, LossReason::EntryGone),
            Err(error) => assert!(error.is_lost(), "{error}"),
        }
    }
}

pub async fn a_ticket_at_or_below_the_floor_is_over([one, other]: [Locks; 2]) {
    let ticket = hold(&one).await.detach().await.unwrap();
    // The first step of a raise only, as if its process ended then.
    one.driver().raise_token_floor(ticket.token()).await.unwrap();
    let refused = other.adopt(&ticket).await.unwrap_err();
    let over = matches!(refused, Error::Lost { reason: LossReason::TicketOver, .. });
    assert!(over, "{refused:?}");
    let left = one.inspect("x").await.unwrap();
    assert!(one.revoke("x", left[0].attempt.unwrap()).await.unwrap());
    // Above the floor, hand-overs go on as before, until the floor is raised.
    let ticket = hold(&one).await.detach().await.unwrap();
    let guard = other.adopt(&ticket).await.unwrap();
    one.driver().raise_token_floor(guard.token()).await.unwrap();
    let refused = guard.detach().await.unwrap_err();
    assert!(refused.is_lost(), "{refused:?}");
    // Its client releases the lock.
    is_free(&one).await;
}

/// The expired row is there until it is removed.
pub async fn a_raise_removes_what_has_expired(locks: Locks) {
    let short = locks.lock("x").unwrap().ttl(Duration::from_millis(500));
    let ticket = short.acquire().await.unwrap().detach().await.unwrap();
    is_free(&locks).await;
    locks.raise_token_floor(ticket.token()).await.unwrap();
    assert!(hold(&locks).await.token() > ticket.token());
}
