//! Taking votes back.

use std::{io, sync::Arc, time::Duration};

use futures_util::StreamExt;
use lock_core::{Clock, Instant, LockName, Request, keep::backoff::Backoff};
use redis::Cmd;
use tokio::sync::watch;
use uuid::Uuid;

use super::{node::Node, script, store::Majority, vote::Vote};

/// The time limit of one request.
const LIMIT: Duration = Duration::from_secs(1);
/// The pauses before a request is sent again.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);

/// Takes votes back, one node at a time, until a node has confirmed or the vote has expired.
///
/// It does not matter whether the node was connected when it was asked: it may have the vote of an
/// earlier round or renewal, whose answer was lost with the connection. So it is asked for as long as a vote can last, a TTL, and not
/// longer. Until then it costs a sleeping task, and no request while there is no connection.
#[derive(Clone)]
pub(super) struct Back {
    nodes: Vec<Arc<Node>>,
    command: Arc<Cmd>,
    until: Instant,
    /// A close waits for its first request.
    under_way: watch::Receiver<()>,
}

impl Back {
    /// Takes the vote of one node back.
    pub(super) async fn run(self, number: usize) {
        let Self { nodes, command, until, under_way } = self;
        let node = &nodes[number];
        if node.call(&command, LIMIT).await.is_ok() {
            return;
        }
        drop(under_way);
        let mut backoff = Backoff::new(FIRST, LONGEST);
        loop {
            let left = until.since(Clock::Boot.now());
            if left.is_zero() || node.is_closed() {
                return;
            }
            backoff.wait().await;
            node.connected(left).await;
            if node.call(&command, LIMIT).await.is_ok() {
                return;
            }
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
        let (nodes, under_way) = (self.nodes.clone(), self.begin());
        Back { nodes, command: Arc::new(command), until, under_way }
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
