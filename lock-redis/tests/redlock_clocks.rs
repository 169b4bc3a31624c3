//! What servers' clocks that jump, or run fast, do to a lock of a majority: exactly what the
//! documentation says.

use std::time::Duration;

use lock_core::{Clock, ClockJumps, LossReason};
use lock_lab::Shift;

use crate::lab::{
    majority::{self, *},
    until, within,
};

/// Longer than the test, so that nothing expires by itself; shorter than a jump.
const TTL: Duration = Duration::from_secs(30);
const JUMP: Duration = Duration::from_secs(60);

/// Takes a lock with this many votes of five, lets the clocks of servers with a vote jump, one
/// after the other, and returns the number of jumps after which another client gets the lock, too.
async fn jumps_until_two_hold_it(votes: usize, renewed: bool) -> usize {
    let five = Five::own().await;
    let far = Far::of(&five).await;
    let near = five.locks().await;
    five.all_know(&far.locks).await;
    five.all_know(&near).await;
    far.proxies[votes..].iter().for_each(|proxy| proxy.refuse());
    let lock = far.locks.lock("orders").unwrap().ttl(TTL);
    let guard = match renewed {
        true => lock.acquire().await.unwrap(),
        // Without renewals it keeps exactly these votes.
        false => lock.fixed_term().acquire().await.unwrap(),
    };
    until(async || five.votes("orders").await == votes).await;
    let other = near.lock("orders").unwrap().ttl(TTL);
    for jumps in 0..=votes {
        if jumps > 0 {
            let server = &five.nodes[jumps - 1];
            server.move_clocks(Shift::ahead(AGE + JUMP), Shift::NONE).unwrap();
        }
        let Some(second) = other.try_acquire().await.unwrap() else {
            // The votes that it could have got are taken back.
            until(async || five.votes("orders").await <= votes - jumps).await;
            continue;
        };
        assert!(second.token() > guard.token(), "a resource that checks tokens is safe");
        if renewed {
            // Until it reaches them, it cannot know whether it has lost its majority.
            far.proxies.iter().for_each(|proxy| proxy.heal());
            assert_eq!(within(guard.lost()).await, LossReason::EntryGone);
        }
        return jumps;
    }
    panic!("no number of jumps breaks it");
}

async fn breaks_as_promised(votes: usize, jumps: usize) {
    assert_eq!(jumps_until_two_hold_it(votes, false).await, jumps);
    assert_eq!(promised().await.that_break(votes), jumps);
}

/// What the store says about it.
async fn promised() -> ClockJumps {
    let five = Five::lent().await;
    five.locks().await.guarantees().clock_jumps.expect("servers vote")
}

#[tokio::test]
async fn the_promises_name_the_jumps() {
    let promised = promised().await;
    assert_eq!(promised.to_string(), "1 with 3 of 5 votes, 2 with 4, 3 with 5");
}

#[tokio::test]
async fn exactly_a_quorum_falls_with_one_jump() {
    breaks_as_promised(3, 1).await;
}

#[tokio::test]
async fn one_vote_more_carries_one_jump() {
    breaks_as_promised(4, 2).await;
}

#[tokio::test]
async fn all_votes_carry_two_jumps() {
    breaks_as_promised(5, 3).await;
}

#[tokio::test]
async fn the_first_holder_hears_of_it_at_its_next_renewal() {
    assert_eq!(jumps_until_two_hold_it(3, true).await, 1);
}

/// Cuts off a holder with five votes, lets the clocks of some servers gain this part of the time, and
/// returns whether another client got the lock before the holder stopped.
async fn overtaken(servers: usize, gain: f64) -> bool {
    let five = Five::own().await;
    let far = Far::of(&five).await;
    let near = five.locks().await;
    five.all_know(&far.locks).await;
    five.all_know(&near).await;
    let held = far.locks.lock("orders").unwrap().ttl(majority::TTL).acquire().await.unwrap();
    until(async || five.votes("orders").await == 5).await;
    far.proxies.iter().for_each(|proxy| proxy.cut());
    let cut = Clock::Boot.now();
    let end = cut + held.remaining();
    let next = near.lock("orders").unwrap().ttl(majority::TTL);
    while next.try_acquire().await.unwrap().is_none() {
        let ahead = Shift::ahead(AGE + Clock::Boot.now().since(cut).mul_f64(gain));
        for server in &five.nodes[..servers] {
            server.move_clocks(ahead, Shift::NONE).unwrap();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Clock::Boot.now() < end
}

/// Every deadline is a twentieth of the TTL early.
#[tokio::test]
async fn clocks_that_are_slewed_within_the_margin_overtake_no_holder() {
    assert!(!overtaken(5, 0.045).await, "two held it");
}

#[tokio::test]
async fn a_minority_of_fast_clocks_overtakes_no_holder() {
    assert!(!overtaken(2, 1.0).await, "two held it");
}
