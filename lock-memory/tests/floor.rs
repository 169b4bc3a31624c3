//! The token floor by virtual time: the holders that a raise ends, and the grants after it.

use lock_core::{Error, FencingToken, Gate, Locks, LossReason};
use lock_memory::MemoryStore;

const FLOOR: FencingToken = FencingToken::new(1_000_000);

#[tokio::test(start_paused = true)]
async fn a_raise_ends_holders_below_it_and_lets_waiters_in_above_it() {
    let store = MemoryStore::new();
    let [first, second] = [0, 1].map(|_| Locks::new(store.client()));
    let guard = first.lock("orders").unwrap().acquire().await.unwrap();
    let lock = second.lock("orders").unwrap();
    let waiter = tokio::spawn(async move { lock.acquire().await });
    while first.inspect("orders").await.unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    assert_eq!(first.token_floor().await.unwrap().above, FencingToken::new(0));
    let floor = first.raise_token_floor(FLOOR).await.unwrap();
    assert_eq!(floor.above, FLOOR);
    assert_eq!(guard.lost().await, LossReason::EntryGone);
    let next = waiter.await.unwrap().unwrap();
    assert!(next.token() > FLOOR);
    // The floor is as high already: no holder is ended, and the floor does not fall.
    assert_eq!(second.raise_token_floor(FLOOR).await.unwrap().above, FLOOR);
    let lower = second.raise_token_floor(FencingToken::new(1)).await.unwrap();
    assert_eq!((lower.above, lower.newest), (FLOOR, next.token()));
    assert!(next.is_valid());
}

/// The resource refuses both. Whether the holder is late, its store knows.
#[tokio::test(start_paused = true)]
async fn a_swap_is_told_from_a_late_writer() {
    let (stock, store) = (Gate::new(10), MemoryStore::new());
    // By a holder of the store before.
    stock.enter(FLOOR, |left| *left -= 1).unwrap();
    let [locks, operator] = [0, 1].map(|_| Locks::new(store.client()));
    let guard = locks.lock("stock").unwrap().acquire().await.unwrap();
    let refused = stock.enter(guard.token(), |left| *left -= 1).unwrap_err();
    for told in ["later holder", "is Ok", "swapped"] {
        assert!(refused.to_string().contains(told), "{refused}");
    }
    guard.renew().await.unwrap();
    operator.raise_token_floor(refused.newest).await.unwrap();
    // The raise has ended the holder: now it is late.
    assert!(guard.renew().await.unwrap_err().is_lost());
    let next = locks.lock("stock").unwrap().acquire().await.unwrap();
    assert_eq!(stock.enter(next.token(), |left| *left), Ok(9));
}

#[tokio::test(start_paused = true)]
async fn a_floor_without_room_above_it_is_refused() {
    let locks = Locks::new(MemoryStore::new().client());
    let greatest = locks.guarantees().greatest_floor();
    assert_eq!(greatest.value(), 1 << 62);
    let above = FencingToken::new(greatest.value() + 1);
    let refused = locks.raise_token_floor(above).await.unwrap_err();
    assert!(matches!(refused, Error::InvalidOption { .. }), "{refused}");
    assert!(refused.to_string().contains(&greatest.to_string()), "{refused}");
    let floor = locks.raise_token_floor(greatest).await.unwrap();
    assert_eq!(floor.above, greatest);
    assert!(locks.lock("x").unwrap().acquire().await.unwrap().token() > greatest);
}
