//! Reading: the holder of a name, and the names in use.

use std::{collections::BTreeMap, io, sync::Arc, time::Duration};

use futures_util::{StreamExt, future::try_join3, stream::FuturesUnordered};
use lock_core::{Entry, FencingToken, Holder, LockName};
use redis::{Cmd, cmd};

use super::{fault::Fault, node::Node, store::Majority, vote::Vote};
use crate::{
    layout::key::Key,
    wire::{
        answer::{bytes, int, number},
        scan,
    },
};

/// The time limit of a request that only reads.
const LIMIT: Duration = Duration::from_secs(2);

/// What a node answers about a name.
#[derive(Debug)]
struct NodeAnswer {
    /// The key's content; empty if its type is another one.
    content: Option<Vec<u8>>,
    ttl_left: Option<Duration>,
    fence: u64,
}

impl Majority {
    /// Returns the holder of a name: the attempt for which a majority has voted.
    pub(super) async fn look(&self, name: &LockName) -> io::Result<Option<Entry>> {
        let key = self.key(name);
        let see = async |number: usize| (number, see(&self.nodes[number], &key).await);
        let mut open: FuturesUnordered<_> = (0..self.nodes.len()).map(see).collect();
        let (mut votes, mut faults) = (BTreeMap::<_, Vec<NodeAnswer>>::new(), Vec::new());
        while let Some((number, answer)) = open.next().await {
            match answer {
                Ok(found) => {
                    if let Some(content) = found.content.clone() {
                        let holder = Vote::read(&content).map(|vote| vote.attempt);
                        votes
                            .entry((holder, holder.is_none().then_some(content)))
                            .or_default()
                            .push(found);
                    }
                }
                Err(fault) => faults.push((number, fault)),
            }
            let most = votes.values().map(Vec::len).max().unwrap_or_default();
            if most >= self.needed() {
                let winner = votes.into_values().find(|votes| votes.len() == most);
                return Ok(winner.and_then(|votes| entry(&votes)));
            }
            // Nodes that do not say may all have voted for the same attempt.
            if most + open.len() + faults.len() < self.needed() {
                return Ok(None);
            }
        }
        Err(self.outage(faults.iter().map(|(number, fault)| (*number, fault))))
    }

    /// Returns the names that a majority of nodes has as keys. While nodes do not answer, names may
    /// be missing: those that had their majority with them.
    pub(super) async fn scan(&self, prefix: &str) -> io::Result<Vec<LockName>> {
        let start = Key::start_of(&self.server, prefix);
        let scans = self.nodes.iter().map(|node| keys(node, &start));
        let (mut counts, mut faults) = (BTreeMap::<LockName, usize>::new(), Vec::new());
        for (number, found) in futures_util::future::join_all(scans).await.into_iter().enumerate() {
            match found {
                Ok(mut found) => {
                    // A scan may return a key twice.
                    found.sort();
                    found.dedup();
                    for name in found.iter().filter_map(|key| Key::name_of(&self.server, key)) {
                        *counts.entry(name).or_default() += 1;
                    }
                }
                Err(fault) => faults.push((number, fault)),
            }
        }
        if self.nodes.len() - faults.len() < self.needed() {
            return Err(self.outage(faults.iter().map(|(number, fault)| (*number, fault))));
        }
        let taken = counts.into_iter().filter(|(_, nodes)| *nodes >= self.needed());
        Ok(taken.map(|(name, _)| name).filter(|name| name.as_str().starts_with(prefix)).collect())
    }
}

async fn see(node: &Arc<Node>, key: &Key) -> Result<NodeAnswer, Fault> {
    let questions = [("GET", key.lock_name()), ("PTTL", key.lock_name()), ("GET", key.fence())];
    let [get, left, fence] = questions.map(|(what, key)| cmd(what).arg(key).take().into());
    let content = async {
        match node.vote(&get, LIMIT).await {
            // A foreign client's lock of another type.
            Err(fault) if fault.to_string().contains("WRONGTYPE") => Ok(Some(Vec::new())),
            answer => answer.map(|value| bytes(&value)),
        }
    };
    // In one flight.
    let answers =
        Box::pin(try_join3(content, node.vote(&left, LIMIT), node.vote(&fence, LIMIT))).await;
    let (content, left, fence) = answers?;
    let left = int(&left).and_then(|left| u64::try_from(left).ok());
    let fence = bytes(&fence).and_then(|fence| number(&fence)).unwrap_or_default();
    Ok(NodeAnswer { content, ttl_left: left.map(Duration::from_millis), fence })
}

/// The holder, as the nodes that have voted for it show it.
fn entry(votes: &[NodeAnswer]) -> Option<Entry> {
    let content = votes.first()?.content.as_ref()?;
    let fence = votes.iter().map(|answer| answer.fence).max()?;
    let entry = match Vote::read(content) {
        Some(vote) => {
            let holder = Holder::new(Some(vote.description), Some(FencingToken::new(fence)));
            Entry::new(Some(vote.attempt), holder)
        }
        None => Entry::new(None, Holder::default()),
    };
    // The lock is over when the last vote that a majority needs is.
    let left = votes.iter().filter_map(|answer| answer.ttl_left).min();
    let entry = entry.holding();
    Some(match left {
        Some(left) => entry.with_ttl_left(left),
        None => entry,
    })
}

/// Returns the keys of a node that start with `start`.
async fn keys(node: &Arc<Node>, start: &[u8]) -> Result<Vec<Vec<u8>>, Fault> {
    let ask = async |scan: Cmd| {
        let answer = node.vote(&scan.into(), LIMIT).await?;
        redis::from_redis_value_ref(&answer).map_err(|_| Fault::odd(&answer))
    };
    scan::keys(&scan::starting_with(start), ask).await
}
