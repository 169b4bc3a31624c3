//! Redlock without a majority: what a renewal says, and how a client ends.

use lock_core::LossReason;

use crate::lab::{majority::*, until, within};

#[tokio::test]
async fn a_renewal_without_a_majority_counts_the_votes_that_are_gone() {
    let five = Five::own().await;
    let locks = five.locks().await;
    let guard = locks.lock("orders").unwrap().ttl(LONG).acquire().await.unwrap();
    until(async || five.votes("orders").await == 5).await;
    for node in &five.nodes[..2] {
        node.command(&[b"DEL", b"orders"]).await.unwrap();
    }
    five.nodes[4].kill();
    let text = error_chain(&guard.renew().await.unwrap_err());
    let wanted = "2 of 5 nodes have renewed their votes, 2 have none any more, and 3 are needed";
    assert!(text.contains(wanted), "{text}");
    assert!(text.contains(&five.nodes[4].addr().to_string()), "{text}");
    assert!(guard.is_valid());
}

#[tokio::test]
async fn a_close_during_an_outage_ends_and_leaves_nothing_running() {
    let five = Five::own().await;
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = alive();
    let locks = five.locks().await;
    five.all_know(&locks).await;
    let guard = locks.lock("orders").unwrap().ttl(LONG).acquire().await.unwrap();
    // They keep their connections, and say nothing.
    five.nodes.iter().for_each(|node| node.stop());
    let closed = within(locks.close()).await.unwrap_err();
    let text = error_chain(&closed);
    assert!(text.contains("the locks end with their TTL"), "{text}");
    assert_eq!(within(guard.lost()).await, LossReason::Closed);
    drop((guard, locks));
    until(async || alive() <= before).await;
}

#[tokio::test]
async fn a_client_that_is_dropped_beside_a_dead_server_keeps_no_connection() {
    let five = Five::own().await;
    let connections = async || {
        let mut connections = 0;
        for node in &five.nodes[..4] {
            let list = node.command(&[b"CLIENT", b"LIST"]).await.unwrap();
            // The question has one of its own.
            connections += list.lines().count() - 1;
        }
        connections
    };
    let locks = five.locks().await;
    until(async || connections().await == 4).await;
    let guard = locks.lock("orders").unwrap().ttl(LONG).acquire().await.unwrap();
    until(async || five.votes("orders").await == 5).await;
    five.nodes[4].kill();
    // The vote of the dead server is taken back when it is there again.
    guard.release().await.unwrap();
    drop(locks);
    until(async || connections().await == 0).await;
}
