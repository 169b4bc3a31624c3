//! The effects of a raise of the token floor on locks that are left to other processes, on every store.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use distlock::{Error, FencingToken, LockGuard, Locks, LossReason};

use crate::support::{Store, connect, eventually};

const TTL: Duration = Duration::from_secs(20);

on_every_store!(
    a_raise_ends_a_lock_that_goes_from_hand_to_hand,
    a_ticket_at_or_below_the_floor_is_over
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory() {
    a_raise_ends_a_lock_that_goes_from_hand_to_hand("memory").await;
    a_ticket_at_or_below_the_floor_is_over("memory").await;
}

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

/// When a raise returns, no holder has a token at or below it.
async fn a_raise_ends_a_lock_that_goes_from_hand_to_hand(store: &str) {
    let server = Store::open(store).await;
    let clients = [connect(&server.url()).await, connect(&server.url()).await];
    let operator = connect(&server.url()).await;
    if !operator.guarantees().detach {
        return;
    }
    for round in 0..10 {
        let (stop, turns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let hands = tokio::spawn(hand_to_hand(clients.clone(), stop.clone(), turns.clone()));
        let hot = 1 + round % 5 * 3;
        eventually("it goes on", async || turns.load(Ordering::SeqCst) >= hot).await;
        let newest = operator.token_floor().await.unwrap().newest.value();
        let floor = FencingToken::new(newest + 1_000_000);
        operator.raise_token_floor(floor).await.unwrap();
        let left = operator.inspect("x").await.unwrap();
        assert!(left.iter().all(|entry| entry.holder.token > Some(floor)), "{left:?}, {floor}");
        stop.store(true, Ordering::SeqCst);
        match hands.await.unwrap() {
            Ok(guard) => assert_eq!(guard.lost().await, LossReason::EntryGone),
            Err(error) => assert!(error.is_lost(), "{error}"),
        }
        is_free(&operator).await;
    }
}

async fn a_ticket_at_or_below_the_floor_is_over(store: &str) {
    let server = Store::open(store).await;
    let modes: &[&str] = if store == "redis" { &["", "?mode=simple"] } else { &[""] };
    for mode in modes {
        let url = format!("{}{mode}", server.url());
        let (one, other) = (connect(&url).await, connect(&url).await);
        if !one.guarantees().detach {
            return;
        }
        let ticket = hold(&one).await.detach().await.unwrap();
        // The first step of a raise only, as if its process ended then.
        let raised = one.driver().raise_token_floor(ticket.token()).await.unwrap();
        let refused = other.adopt(&ticket).await.unwrap_err();
        let over = matches!(refused, Error::Lost { reason: LossReason::TicketOver, .. });
        assert!(over, "{mode}: {refused:?}");
        for (name, attempt) in one.driver().below_token_floor(raised).await.unwrap() {
            one.revoke(&name, attempt).await.unwrap();
        }
        is_free(&one).await;
        // Above the floor, hand-overs go on as before, until the floor is raised.
        let ticket = hold(&one).await.detach().await.unwrap();
        let guard = other.adopt(&ticket).await.unwrap();
        one.driver().raise_token_floor(guard.token()).await.unwrap();
        let refused = guard.detach().await.unwrap_err();
        assert!(refused.is_lost(), "{mode}: {refused:?}");
        // Its client releases the lock.
        is_free(&one).await;
    }
}
