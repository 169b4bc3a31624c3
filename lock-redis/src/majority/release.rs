//! Taking votes back.

use std::{io, sync::Arc, time::Duration};

use futures_util::StreamExt;
use lock_core::{Clock, Instant, LockName, Request};
use redis::Cmd;
use uuid::Uuid;

use super::{node::Node, script, store::Majority, vote::Vote};

/// The time limit of one request.
const LIMIT: Duration = Duration::from_secs(1);
/// The pause before a request is sent again on the same connection.
const PAUSE: Duration = Duration::from_millis(100);

/// Takes votes back, one node at a time, until a node has confirmed or the vote has expired.
#[derive(Clone)]
pub(super) struct Back {
    nodes: Vec<Arc<Node>>,
    command: Arc<Cmd>,
    until: Instant,
}

impl Back {
    /// Takes the vote of one node back.
    pub(super) async fn run(self, number: usize) {
        let node = &self.nodes[number];
        while node.call(&self.command, LIMIT).await.is_err() {
            let left = self.until.since(Clock::Boot.now());
            if left.is_zero() || node.is_closed() {
                return;
            }
            tokio::time::sleep(PAUSE.min(left)).await;
            node.connected(left).await;
        }
    }
}

impl Majority {
    /// Prepares to take back the votes of one ballot.
    pub(super) fn back(&self, request: &Request, vote: &Vote) -> Back {
        let key = self.key(&request.name);
        self.back_by(script::release(&key, vote.attempt, Some(vote.ballot)), request.ttl)
    }

    fn back_by(&self, command: Cmd, ttl: Duration) -> Back {
        let until = Clock::Boot.now() + ttl;
        Back { nodes: self.nodes.clone(), command: Arc::new(command), until }
    }

    /// Takes all votes of an attempt back. Returns when a majority has confirmed, so that others
    /// can get the lock; further nodes are asked in the background for as long as a vote can last.
    ///
    /// # Errors
    ///
    /// Too few nodes have confirmed, with the reasons.
    pub(super) async fn release(&self, name: &LockName, attempt: Uuid) -> io::Result<bool> {
        let command = script::release(&self.key(name), attempt, None);
        let mut open = self.ask_all(command.clone(), LIMIT, script::released);
        let (mut confirmed, mut was_there, mut faults) = (0, false, Vec::new());
        while let Some((node, answer)) = open.next().await {
            match answer {
                Ok(voted) => {
                    confirmed += 1;
                    was_there |= voted;
                }
                // Its vote is gone all the same.
                Err(fault) if fault.is_young() => confirmed += 1,
                Err(fault) => faults.push((node, fault)),
            }
            if confirmed >= self.needed() {
                break;
            }
        }
        if confirmed < self.needed() {
            return Err(self.outage(faults.iter().map(|(node, fault)| (*node, fault))));
        }
        let back = self.back_by(command, self.config.longest_ttl());
        for (node, _) in faults {
            tokio::spawn(back.clone().run(node));
        }
        tokio::spawn(async move {
            while let Some((node, answer)) = open.next().await {
                if answer.is_err() {
                    tokio::spawn(back.clone().run(node));
                }
            }
        });
        Ok(was_there)
    }
}
