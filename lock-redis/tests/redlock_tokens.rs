//! Tokens on real servers, through losses of data.

mod majority;

use std::time::Duration;

use lock_core::FencingToken;
use majority::*;

/// Numbers that look random, the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % sides) as usize
    }
}

/// A token that no client's clock reaches: an hour ahead of this machine.
fn far_ahead() -> u64 {
    let now = lock_core::wall_clock().duration_since(std::time::UNIX_EPOCH).unwrap();
    (now + Duration::from_secs(3600)).as_micros() as u64
}

fn fence_of(name: &str) -> Vec<u8> {
    [b"{", name.as_bytes(), b"}\xFFfence"].concat()
}

impl Five {
    /// Makes all servers know a token from a client whose clock is ahead: from then on, clocks help
    /// no client, and tokens rise only because majorities meet.
    async fn set_tokens(&self, name: &str, token: u64) {
        for node in self.nodes.iter() {
            node.command(&[b"SET", &fence_of(name), token.to_string().as_bytes()]).await.unwrap();
        }
    }

    async fn knows(&self, node: usize, name: &str, token: u64) -> bool {
        let fence = self.nodes[node].command(&[b"GET", &fence_of(name)]).await.unwrap();
        fence.parse().unwrap_or(0) >= token
    }
}

async fn grant(locks: &lock_core::Locks, name: &str) -> FencingToken {
    let guard = within(locks.lock(name).unwrap().ttl(TTL).acquire()).await.unwrap();
    let token = guard.token();
    guard.release().await.unwrap();
    token
}

#[tokio::test]
async fn tokens_rise_in_50_sequences_of_losses_that_leave_a_majority_of_the_data() {
    let five = Five::start().await;
    let locks = five.locks().await;
    let mut dice = Dice(34);
    for sequence in 0..50 {
        let name = format!("orders-{sequence}");
        let mut last = far_ahead();
        five.set_tokens(&name, last).await;
        for _ in 0..8 {
            let lost = dice.roll(5);
            let mut others = 0;
            for node in (0..5).filter(|node| *node != lost) {
                others += usize::from(five.knows(node, &name, last).await);
            }
            if others >= 3 {
                five.nodes[lost].command(&[b"FLUSHALL"]).await.unwrap();
            }
            let token = grant(&locks, &name).await.value();
            assert!(token > last, "sequence {sequence}: {token} after {last}");
            last = token;
        }
    }
}

/// What the promise excludes: a majority has lost its data, and the clock of this machine is an
/// hour behind the earlier holder's.
#[tokio::test]
async fn a_token_falls_when_a_majority_has_lost_its_data_and_the_clock_is_behind() {
    let five = Five::start().await;
    let locks = five.locks().await;
    let last = far_ahead();
    five.set_tokens("orders", last).await;
    for node in &five.nodes[..2] {
        node.command(&[b"FLUSHALL"]).await.unwrap();
    }
    assert_eq!(grant(&locks, "orders").await.value(), last + 1, "a majority still knows it");
    five.flush().await;
    assert!(grant(&locks, "orders").await.value() < last);
    // With clocks that agree, it rises all the same.
    let token = grant(&locks, "orders").await;
    five.flush().await;
    assert!(grant(&locks, "orders").await > token);
}
