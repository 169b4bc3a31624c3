//! Taking votes back.

use std::{io, sync::Arc, time::Duration};

use futures_util::StreamExt;
use lock_core::{LockName, Request};
use tokio::sync::watch;
use uuid::Uuid;

use super::{fault::Fault, janitor::LIMIT, node::Node, script, store::Majority};
use crate::wire::call::Call;

/// Takes votes back, one node at a time, in the background. The request for the vote may lie in a
/// socket of a server that is stalled.
pub(super) struct Back {
    nodes: Vec<Arc<Node>>,
    call: Arc<Call>,
    ttl: Duration,
    /// A close waits for the first requests.
    under_way: watch::Receiver<()>,
}

impl Back {
    /// Takes the vote of one node back, which may have it.
    pub(super) fn from(&self, number: usize) {
        self.nodes[number].owe(self.call.clone(), self.ttl, self.under_way.clone());
    }
}

impl Majority {
    /// Prepares to take back an attempt's votes: of one ballot, or of all.
    pub(super) fn back(&self, request: &Request, attempt: Uuid, ballot: Option<u64>) -> Back {
        self.back_by(script::release(&self.key(&request.name), attempt, ballot), request.ttl)
    }

    fn back_by(&self, call: Call, ttl: Duration) -> Back {
        let (nodes, under_way) = (self.nodes.clone(), self.begin());
        Back { nodes, call: Arc::new(call), ttl, under_way }
    }

    /// Takes all votes of an attempt back. Returns when a majority has confirmed, so that others
    /// can get the lock; the others of those that were asked for their votes confirm later.
    pub(super) async fn release(&self, name: &LockName, attempt: Uuid) -> io::Result<bool> {
        let call = script::release(&self.key(name), attempt, None);
        let asked = self.asked.nodes(attempt);
        let mut open = self.ask_all(call.clone(), LIMIT, script::released);
        let (mut confirmed, mut never, mut was_there, mut faults) = (0, 0, false, Vec::new());
        while let Some((node, answer)) = open.next().await {
            match answer {
                Ok(voted) => {
                    confirmed += 1;
                    was_there |= voted;
                }
                // Its vote is gone all the same.
                Err(Fault::Young(_)) => confirmed += 1,
                Err(_) if asked.is_some_and(|asked| !asked[node]) => never += 1,
                Err(fault) => faults.push((node, fault)),
            }
            if confirmed >= self.needed() {
                break;
            }
        }
        let (record, is_own) = (self.asked.clone(), asked.is_some());
        let back = self.back_by(call, self.config.longest_ttl());
        // A node that has not confirmed takes its vote back later.
        let leave = move |node: usize, fault: &Fault| {
            let may = match is_own {
                true => record.owes(attempt, node),
                // A minority is of no use to it, and its client takes it back.
                false => fault.was_sent(),
            };
            if may {
                back.from(node);
            }
        };
        faults.iter().for_each(|(node, fault)| leave(*node, fault));
        // A node that was never asked has no vote.
        if confirmed + never < self.needed() {
            return Err(self.outage(faults.iter().map(|(node, fault)| (*node, fault))));
        }
        let asked = self.asked.clone();
        tokio::spawn(async move {
            while let Some((node, answer)) = open.next().await {
                if let Err(fault) = answer {
                    leave(node, &fault);
                }
            }
            asked.forget(attempt);
        });
        Ok(was_there)
    }
}
