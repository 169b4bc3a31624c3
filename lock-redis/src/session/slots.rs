//! The nodes of a cluster, and the slots that each of them owns.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, stream};
use lock_core::{Reach, keep::poison::lock};
use redis::{ProtocolVersion, RedisError, RedisResult};
use tokio::{
    sync::{Notify, watch},
    time::timeout,
};

use super::node::{Link, Node};
use crate::{
    config::Address,
    error,
    wire::{
        connection::Connector,
        dial::Dial,
        lua::usual,
        sentinel::Server,
        slots::{self, SLOTS, Shard},
    },
};

/// The most nodes that are asked at a time.
const AT_ONCE: usize = 8;
/// Time limit of a connected node's answer.
const LIMIT: Duration = Duration::from_secs(1);

/// The slots of a cluster. Nodes are asked for them at the start, after a redirection, and while a
/// node has no connection; never else.
#[derive(Debug)]
pub(crate) struct Slots {
    map: watch::Sender<Arc<Map>>,
    dial: Dial,
    /// The channel of the client's pushes, if it wants any.
    channel: Option<String>,
    reach: Reach,
    /// Counts the connections of all nodes.
    numbers: Arc<AtomicU64>,
    /// The addresses that the configuration names.
    seeds: Vec<Address>,
    /// The same, and those of the newest answer, replicas too.
    known: Mutex<Vec<Address>>,
    /// Number of questions, so that each goes to another node first.
    asked: AtomicUsize,
    /// Nodes that have no slots, and get their first one now.
    guests: Mutex<Vec<(Address, Arc<Node>)>>,
    pub(super) stale: Notify,
}

/// The owners of all slots at one time.
#[derive(Debug)]
pub(crate) struct Map {
    /// Per slot the number of its owner.
    owners: Box<[u16]>,
    nodes: Vec<(Address, Arc<Node>)>,
}

fn shards(answer: &redis::Value, asked: &Address) -> RedisResult<Vec<Shard>> {
    let none = || {
        let why = format!("the node {asked} knows no owner of any slot");
        RedisError::from(std::io::Error::new(std::io::ErrorKind::ConnectionRefused, why))
    };
    slots::read(answer, asked).filter(|shards| !shards.is_empty()).ok_or_else(none)
}

impl Slots {
    /// Asks the nodes for the slots, until one of them answers.
    pub(super) async fn find(
        dial: Dial,
        channel: Option<String>,
        reach: Reach,
        nodes: &[Address],
    ) -> RedisResult<Self> {
        let map = Arc::new(Map { owners: vec![0; SLOTS].into(), nodes: Vec::new() });
        let slots = Self {
            map: watch::Sender::new(map),
            dial,
            channel,
            reach,
            numbers: Arc::default(),
            seeds: nodes.to_vec(),
            known: Mutex::new(nodes.to_vec()),
            asked: AtomicUsize::new(0),
            guests: Mutex::default(),
            stale: Notify::new(),
        };
        let shards = slots.ask_by_address().await?;
        slots.take_in(&shards);
        Ok(slots)
    }

    /// Makes a node, without a connection.
    fn node(&self, address: &Address) -> Arc<Node> {
        let connector = Connector {
            dial: self.dial.clone(),
            server: Server::Member(address.clone()),
            scripts: usual(),
            channel: self.channel.clone(),
        };
        Arc::new(Node::new(connector, self.reach.clone(), self.numbers.clone()))
    }

    /// Returns the owner of a slot.
    pub(super) fn owner(&self, slot: u16) -> Arc<Node> {
        let map = self.map.borrow();
        let owner = usize::from(map.owners[usize::from(slot)]);
        // There is always one: `find` takes no answer without owners.
        map.nodes[owner.min(map.nodes.len() - 1)].1.clone()
    }

    /// Returns the owner of slots at an address.
    pub(super) fn node_at(&self, address: &Address) -> Option<Arc<Node>> {
        let map = self.map.borrow();
        map.nodes.iter().find(|(at, _)| at == address).map(|(_, node)| node.clone())
    }

    /// Returns the node at an address that has no slots yet, and whether it is a new one.
    pub(super) fn guest(&self, address: &Address) -> (Arc<Node>, bool) {
        let mut guests = lock(&self.guests);
        if let Some((_, node)) = guests.iter().find(|(at, _)| at == address) {
            return (node.clone(), false);
        }
        let node = self.node(address);
        guests.push((address.clone(), node.clone()));
        (node, true)
    }

    /// Forgets a node, if it is a guest: it may never get its slot. Returns whether it was one.
    pub(super) fn forget(&self, node: &Arc<Node>) -> bool {
        let mut guests = lock(&self.guests);
        let before = guests.len();
        guests.retain(|(_, guest)| !Arc::ptr_eq(guest, node));
        let was_one = guests.len() < before;
        drop(guests);
        // Nobody else tells that the connection which broke is of no interest any more.
        if was_one && !self.is_incomplete() {
            self.reach.works();
        }
        was_one
    }

    /// Ends the guests that have slots now, or all.
    fn end_guests(&self, has_slots: impl Fn(&Address) -> bool) {
        lock(&self.guests).retain(|(address, node)| {
            let ends = has_slots(address);
            if ends {
                node.close();
            }
            !ends
        });
    }

    pub(super) fn nodes(&self) -> Vec<Arc<Node>> {
        self.map.borrow().nodes.iter().map(|(_, node)| node.clone()).collect()
    }

    pub(super) fn changes(&self) -> watch::Receiver<Arc<Map>> {
        self.map.subscribe()
    }

    /// Makes the task ask for the slots soon.
    pub(super) fn suspect(&self) {
        self.stale.notify_one();
    }

    pub(super) fn close(&self) {
        self.end_guests(|_| true);
        self.suspect();
    }

    /// Takes note of a redirection to a node. An unknown one is asked for first.
    pub(super) fn redirected(&self, slot: u16, address: &Address) {
        self.map.send_if_modified(|map| {
            let known = map.nodes.iter().position(|(at, _)| at == address);
            let Some(owner) = known.and_then(|owner| u16::try_from(owner).ok()) else {
                return false;
            };
            let mut owners = map.owners.clone();
            owners[usize::from(slot)] = owner;
            *map = Arc::new(Map { owners, nodes: map.nodes.clone() });
            true
        });
        self.suspect();
    }

    /// Takes in the slots as a node sees them. Returns the nodes that have slots now and had none,
    /// each with whether it may have taken over from a node that cannot be reached, or that is no
    /// primary now.
    pub(super) fn take_in(&self, shards: &[Shard]) -> Vec<(Arc<Node>, bool)> {
        self.know(shards);
        let before = self.map.borrow().clone();
        let (mut owners, mut nodes) = (before.owners.clone(), Vec::new());
        let (mut added, mut changed) = (Vec::new(), false);
        for shard in shards {
            let place =
                nodes.iter().position(|(at, _)| *at == shard.primary).unwrap_or_else(|| {
                    let known = before.nodes.iter().find(|(at, _)| *at == shard.primary);
                    let node = known.map(|(_, node)| node.clone()).unwrap_or_else(|| {
                        let node = self.node(&shard.primary);
                        // If it took over from the owner until now, it shows that when it is connected.
                        let earlier = before.owner_of(shard.first);
                        if let Some((_, earlier)) = earlier {
                            node.follows(earlier, &shard.primary);
                        }
                        let takes_over = earlier.is_some_and(|(at, earlier)| {
                            matches!(earlier.state(), Link::Down(..))
                                || !shards.iter().any(|shard| shard.primary == *at)
                        });
                        added.push((node.clone(), takes_over));
                        node
                    });
                    nodes.push((shard.primary.clone(), node));
                    nodes.len() - 1
                });
            for slot in shard.first..=shard.last {
                changed |= before.owner_of(slot).is_none_or(|(at, _)| *at != shard.primary);
                owners[usize::from(slot)] = u16::try_from(place).unwrap_or_default();
            }
        }
        if !changed {
            return added;
        }
        let gone: Vec<_> = before
            .nodes
            .iter()
            .filter(|(address, _)| !nodes.iter().any(|(at, _)| at == address))
            .map(|(_, node)| node.clone())
            .collect();
        self.end_guests(|guest| nodes.iter().any(|(at, _)| at == guest));
        // Slots without an owner lead to any node, which refuses.
        self.map.send_replace(Arc::new(Map { owners, nodes }));
        gone.iter().for_each(|node| node.retire());
        if !gone.is_empty() {
            self.reach.works();
        }
        added
    }

    fn know(&self, shards: &[Shard]) {
        let mut known = self.seeds.clone();
        for shard in shards {
            for address in std::iter::once(&shard.primary).chain(&shard.replicas) {
                if !known.contains(address) {
                    known.push(address.clone());
                }
            }
        }
        *lock(&self.known) = known;
    }

    /// Asks the connected nodes, then all known ones, until one answers.
    pub(super) async fn ask(&self) -> RedisResult<Vec<Shard>> {
        let mut nodes = self.nodes();
        let first = self.asked.fetch_add(1, Ordering::Relaxed) % nodes.len().max(1);
        nodes.rotate_left(first);
        for node in nodes {
            let Link::Up(connection) = node.state() else { continue };
            let answer = connection.call(&slots::question().into(), LIMIT).await;
            if let Ok(shards) = answer.and_then(|(value, _)| shards(&value, &connection.address)) {
                return Ok(shards);
            }
        }
        self.ask_by_address().await
    }

    async fn ask_by_address(&self) -> RedisResult<Vec<Shard>> {
        let known = lock(&self.known).clone();
        let mut failed = error::closed_link();
        let ask = |address: Address| async move { self.ask_at(&address).await };
        let mut asked = stream::iter(known).map(ask).buffer_unordered(AT_ONCE);
        while let Some(answer) = asked.next().await {
            match answer {
                Ok(shards) => return Ok(shards),
                // It says more than that another node is silent.
                Err(_) if error::is_denied(&failed) => {}
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    /// Asks a node by a connection of its own.
    async fn ask_at(&self, address: &Address) -> RedisResult<Vec<Shard>> {
        let question = async {
            let options = self.dial.options();
            let mut node = self.dial.open(address, ProtocolVersion::RESP2, options).await?;
            node.redis.send_packed_command(&slots::question()).await?.extract_error()
        };
        let answer = timeout(self.dial.limit, question).await;
        let answer = answer.unwrap_or_else(|_| Err(error::silent(self.dial.limit)));
        let answer = answer.map_err(|failed| slots::explained(address, failed))?;
        shards(&answer, address)
    }

    /// Whether a close has ended the nodes.
    pub(super) fn is_closed(&self) -> bool {
        self.nodes().iter().any(|node| matches!(node.state(), Link::Closed))
    }

    pub(super) fn is_incomplete(&self) -> bool {
        self.nodes().iter().any(|node| matches!(node.state(), Link::Down(..)))
    }
}

impl Map {
    fn owner_of(&self, slot: u16) -> Option<(&Address, &Arc<Node>)> {
        let (address, node) = self.nodes.get(usize::from(self.owners[usize::from(slot)]))?;
        Some((address, node))
    }
}
