//! The longest texts that a request takes.

use crate::support::*;

/// What lock-core takes. Each byte of the description becomes six in JSON.
const HOLDER: usize = 64 * 1024;
const VALUE: usize = 512 * 1024;

/// A server would break the connection of all locks over a request that is too long.
#[tokio::test]
async fn the_longest_texts_are_taken() {
    let server = calm_server().await;
    let locks = open_calm(&server).await;
    let election = locks.election("led").unwrap().holder("\u{1}".repeat(HOLDER));
    let mut leads = soon("a campaign", election.campaign("x".repeat(VALUE))).await.unwrap();
    // Earlier values stay beside the newest one.
    for length in [16 * 1024, VALUE, 16 * 1024, VALUE] {
        soon("a value", leads.proclaim("y".repeat(length))).await.unwrap();
    }
    assert!(leads.is_valid());
    leads.resign().await.unwrap();
    let names: Vec<_> = (0..2).map(|n| n.to_string()).collect();
    let set = locks.all(&names).unwrap().holder("\u{1}".repeat(HOLDER));
    set.try_acquire().await.unwrap().expect("a free set").release().await.unwrap();
}
