//! The longest texts that a request takes, and longer ones.

use lock_core::Error;

use crate::support::*;

const VALUE: usize = 900_000;
/// As JSON, with quotes.
const HOLDER: usize = 64 * 1024 - 2;

fn is_about(error: &Error, what: &str) -> bool {
    matches!(error, Error::InvalidOption { option, .. } if option == what)
}

/// A server would break the connection of all locks over it, again and again.
#[tokio::test]
async fn texts_that_are_too_long_are_refused_and_not_sent() {
    let server = calm_server().await;
    let locks = open_calm(&server).await;
    let long = "x".repeat(2_000_000);
    let lock = locks.lock("long").unwrap().holder(&long);
    let (used, ()) = cost(&server, async {
        let error = soon("the lock", lock.acquire()).await.unwrap_err();
        assert!(is_about(&error, "holder"), "{error}");
        let error = soon("a try", lock.try_acquire()).await.unwrap_err();
        assert!(is_about(&error, "holder"), "{error}");
        let set = locks.all(["long", "other"]).unwrap().holder(&long);
        let error = soon("a set", set.acquire()).await.unwrap_err();
        assert!(is_about(&error, "holder"), "{error}");
        let election = locks.election("led").unwrap();
        let error = soon("a campaign", election.campaign(&long)).await.unwrap_err();
        assert!(is_about(&error, "value"), "{error}");
    })
    .await;
    // The query itself, and perhaps a renewal.
    assert!(used.get("packets_received") < 5, "{used}");
}

#[tokio::test]
async fn the_longest_texts_are_taken() {
    let server = calm_server().await;
    let locks = open_calm(&server).await;
    let election = locks.election("led").unwrap().holder("x".repeat(HOLDER));
    let mut leads = soon("a campaign", election.campaign("x".repeat(VALUE))).await.unwrap();
    // Earlier values stay beside the newest one.
    for length in [16 * 1024, VALUE, 16 * 1024, VALUE] {
        soon("a value", leads.proclaim("y".repeat(length))).await.unwrap();
    }
    assert!(leads.is_valid());
    leads.resign().await.unwrap();
}
