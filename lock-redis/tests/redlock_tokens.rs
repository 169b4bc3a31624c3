//! Tokens on real servers, through losses of data.

use std::time::Duration;

use lock_core::FencingToken;

use crate::lab::{majority::*, until, within};

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

/// Two clients in turns, and what happens to the servers between their grants.
struct Story {
    five: Five,
    clients: [Far; 2],
    dice: Dice,
    /// Grants whose majority had exactly one server that knew the last token.
    met_in_one: usize,
    restarts: usize,
}

impl Story {
    async fn start() -> Self {
        let five = Five::own().await;
        // The votes of a server that restarts count soon.
        let client = async || Far::with(&five, "?max_ttl=1s").await;
        let clients = [client().await, client().await];
        Self { five, clients, dice: Dice(34), met_in_one: 0, restarts: 0 }
    }

    async fn knowing(&self, name: &str, token: u64) -> Vec<usize> {
        let mut knowing = Vec::new();
        for node in 0..5 {
            if self.five.knows(node, name, token).await {
                knowing.push(node);
            }
        }
        knowing
    }

    /// Up to two servers lose their data, sometimes by a restart. A majority keeps the last token.
    async fn lose(&mut self, name: &str, last: u64) {
        for _ in 0..self.dice.roll(3) {
            let (lost, restart) = (self.dice.roll(5), self.dice.roll(60) == 0);
            let mut others = self.knowing(name, last).await;
            others.retain(|node| *node != lost);
            if others.len() < 3 {
                continue;
            }
            let node = &self.five.nodes[lost];
            if restart {
                node.kill();
                node.restart().await.unwrap();
                self.restarts += 1;
            }
            node.command(&[b"FLUSHALL"]).await.unwrap();
        }
    }

    /// One of the clients gets the lock, mostly without two of the servers that know the last token.
    async fn grant(&mut self, name: &str, last: u64) -> u64 {
        let mut knowing = self.knowing(name, last).await;
        let far = &self.clients[self.dice.roll(2)];
        if self.dice.roll(4) > 0 {
            for _ in 0..2 {
                let refused = knowing.swap_remove(self.dice.roll(knowing.len() as u64));
                far.proxies[refused].refuse();
            }
        }
        let token = self.take(far, name).await;
        self.met_in_one += usize::from(knowing.len() == 1);
        far.proxies.iter().for_each(|proxy| proxy.heal());
        token
    }

    async fn take(&self, far: &Far, name: &str) -> u64 {
        let lock = far.locks.lock(name).unwrap();
        let guard = within(async {
            loop {
                match lock.acquire().await {
                    Ok(guard) => return guard,
                    // A server that is needed has restarted.
                    Err(error) => assert!(error.is_unavailable(), "{error}"),
                }
            }
        })
        .await;
        let token = guard.token().value();
        guard.release().await.unwrap();
        // What is known of the token does not change any more.
        until(async || self.five.left_behind().await.is_empty()).await;
        token
    }
}

#[tokio::test]
async fn tokens_rise_in_sequences_of_losses_that_leave_a_majority_of_the_data() {
    let sequences = lock_lab::size(10, 50);
    let mut story = Story::start().await;
    for sequence in 0..sequences {
        let name = format!("orders-{sequence}");
        let mut last = far_ahead();
        story.five.set_tokens(&name, last).await;
        for _ in 0..8 {
            story.lose(&name, last).await;
            let token = story.grant(&name, last).await;
            assert!(token > last, "sequence {sequence}: {token} after {last}");
            last = token;
        }
    }
    println!("{} met in one server, {} restarts", story.met_in_one, story.restarts);
    assert!(story.met_in_one >= 20, "{}", story.met_in_one);
    assert!(story.restarts > sequences / 25, "{}", story.restarts);
}

/// What the promise excludes: a majority has lost its data, and the clock of this machine is an
/// hour behind the earlier holder's.
#[tokio::test]
async fn a_token_falls_when_a_majority_has_lost_its_data_and_the_clock_is_behind() {
    let five = Five::lent().await;
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
