//! Three nodes and the clients, each in its own place of a network.
#![cfg(any(feature = "etcd", feature = "zookeeper"))]

use std::{ops::Deref, sync::Mutex, time::Duration};

use async_trait::async_trait;
use lock_lab::{Builder, Cluster, Member, Network, Place, Server, Shift};
use tokio::{sync::RwLock, time::sleep};

use crate::chaos::{
    plan::Step,
    server::{Leftovers, jump},
    stage::{Connecting, Failure, Home, Stage},
};

/// The first clients know one node each. The others know all.
const PINNED: usize = 3;

/// The faults for every cluster.
pub const PLAIN: &[&str] = match WITH_WALL_CLOCK {
    [plain @ .., _] => plain,
    [] => unreachable!(),
};
/// For stores that do not use the time of day. The last fault makes it jump.
pub const WITH_WALL_CLOCK: &[&str] = &[
    "kill",
    "stop",
    "cut_nodes",
    "deafen_node",
    "isolate_node",
    "cut_client",
    "deafen_client",
    "isolate_client",
    "minority",
    "minority_follower",
    "wall_clock",
];

/// The faults for a kind of cluster, and its documented limits.
#[derive(Clone, Copy)]
pub struct Terms {
    pub kinds: &'static [&'static str],
    /// Longest time for which two clients may hold a lock after the first one's session ended
    /// early.
    pub early: Duration,
    /// Whether one node stopped while another is cut off may cause two holders.
    pub stall_alone: bool,
}

pub struct Nodes<K: Member> {
    cluster: Cluster<K>,
    network: Network,
    terms: Terms,
    connect: fn(String) -> Connecting,
    leftovers: for<'a> fn(&'a K) -> Leftovers<'a>,
    places: Mutex<Vec<Place>>,
    /// A stop of a node locks it for writing, a cut for reading: see [`Terms::stall_alone`].
    stalled: RwLock<()>,
    /// One lock per node: two concurrent starts would kill each other's process.
    starting: [tokio::sync::Mutex<()>; 3],
}

impl<K: Member + Deref<Target = Server>> Nodes<K> {
    pub async fn new(
        builder: Builder<K>,
        terms: Terms,
        connect: fn(String) -> Connecting,
        leftovers: for<'a> fn(&'a K) -> Leftovers<'a>,
    ) -> Result<Self, Failure> {
        let network = Network::new()?;
        let cluster = builder.start_cluster(&network).await?;
        let (places, stalled, starting) = Default::default();
        Ok(Self { cluster, network, terms, connect, leftovers, places, stalled, starting })
    }

    fn client(&self, step: &Step) -> (usize, Place) {
        let places = self.places.lock().unwrap();
        let client = step.client % places.len();
        (client, places[client])
    }

    /// In every second fault the leader, if there is one.
    async fn node(&self, step: &Step) -> usize {
        let leader = match step.node % 2 {
            0 => self.cluster.leader_now().await,
            _ => None,
        };
        leader.unwrap_or(step.node / 2 % 3)
    }

    async fn kill(&self, node: usize, lasts: Duration) -> Result<(), Failure> {
        let _alone = self.starting[node].lock().await;
        let server = self.cluster.node(node);
        server.kill();
        sleep(lasts).await;
        // The node serves after it has found the others, perhaps only after a later heal.
        Ok(server.relaunch()?)
    }

    async fn stop(&self, node: usize, lasts: Duration) {
        let _alone = match self.terms.stall_alone {
            true => Some(self.stalled.write().await),
            false => None,
        };
        self.cluster.node(node).stop();
        sleep(lasts).await;
        self.cluster.node(node).resume();
    }

    async fn wall_clock(&self, node: usize, step: &Step) -> Result<(), Failure> {
        // A process killed meanwhile has no clock.
        let _alone = self.starting[node].lock().await;
        let server = self.cluster.node(node);
        server.move_clocks(jump(step), Shift::NONE)?;
        sleep(step.lasts).await;
        Ok(server.move_clocks(Shift::NONE, Shift::NONE)?)
    }

    /// Cuts the places on the left off from the places on the right, or makes the left deaf.
    async fn cut(
        &self,
        left: &[Place],
        right: &[Place],
        step: &Step,
        deaf: bool,
    ) -> Result<(), Failure> {
        let _no_stall = self.stalled.read().await;
        let pairs = || left.iter().flat_map(|a| right.iter().map(move |b| (*a, *b)));
        match deaf {
            true => pairs().try_for_each(|(a, b)| self.network.deafen(a, b))?,
            false => self.network.split(left, right)?,
        }
        sleep(step.lasts).await;
        Ok(pairs().try_for_each(|(a, b)| self.network.heal_between(a, b))?)
    }
}

#[async_trait]
impl<K: Member + Deref<Target = Server> + Send + Sync> Stage for Nodes<K> {
    fn kinds(&self) -> &'static [&'static str] {
        self.terms.kinds
    }

    fn early(&self) -> Duration {
        self.terms.early
    }

    fn home(&self, client: usize) -> Result<Home, Failure> {
        let side = self.network.side()?;
        let mut places = self.places.lock().unwrap();
        assert_eq!(places.len(), client, "clients come in their order");
        places.push(side.place());
        Ok(Home::Side(side))
    }

    fn connect(&self, client: usize) -> Connecting {
        let url = match client < PINNED {
            true => self.cluster.url_of(&[client]),
            false => self.cluster.url(),
        };
        (self.connect)(url)
    }

    async fn play(&self, step: &Step) -> Result<String, Failure> {
        let node = self.node(step).await;
        let (place, peers) = (self.cluster.place(node), self.cluster.peers(node));
        let peer = (node + 1 + step.other % 2) % 3;
        let peer_place = self.cluster.place(peer);
        let (client, client_place) = self.client(step);
        match step.kind {
            "kill" => self.kill(node, step.lasts).await?,
            "stop" => self.stop(node, step.lasts).await,
            "wall_clock" => self.wall_clock(node, step).await?,
            "cut_nodes" => {
                self.cut(&[place], &[peer_place], step, false).await?;
                return Ok(format!("n{node} n{peer}"));
            }
            "deafen_node" => {
                self.cut(&[place], &[peer_place], step, true).await?;
                return Ok(format!("n{node} to n{peer}"));
            }
            "isolate_node" => self.cut(&[place], &peers, step, false).await?,
            // The client that knows only this node stays with it.
            "minority" => {
                let client_place = self.places.lock().unwrap()[node];
                self.cut(&[place, client_place], &peers, step, false).await?;
                return Ok(format!("n{node} with c{node}"));
            }
            "minority_follower" => {
                let leader = self.cluster.leader_now().await.unwrap_or(node);
                let node = (leader + 1 + step.other % 2) % 3;
                let client_place = self.places.lock().unwrap()[node];
                let minority = [self.cluster.place(node), client_place];
                self.cut(&minority, &self.cluster.peers(node), step, false).await?;
                return Ok(format!("n{node} with c{node}"));
            }
            "cut_client" => {
                self.cut(&[client_place], &[place], step, false).await?;
                return Ok(format!("c{client} n{node}"));
            }
            "deafen_client" => {
                let nodes = self.cluster.places();
                self.cut(&[client_place], nodes, step, true).await?;
                return Ok(format!("c{client}"));
            }
            _ => {
                self.cut(&[client_place], self.cluster.places(), step, false).await?;
                return Ok(format!("c{client}"));
            }
        }
        Ok(format!("n{node}"))
    }

    async fn mend(&self) -> Result<Vec<String>, Failure> {
        let mut ended = Vec::new();
        for (number, node) in self.cluster.nodes().iter().enumerate() {
            if node.ready().await.is_err() {
                let log = node.log();
                let panic = log.lines().rfind(|line| line.contains("panic")).unwrap_or_default();
                ended.push(format!("n{number} has ended by itself: {panic}"));
                node.restart().await?;
            }
        }
        Ok(ended)
    }

    async fn leftovers(&self) -> Result<Vec<String>, Failure> {
        let leader = self.cluster.leader().await?;
        (self.leftovers)(self.cluster.node(leader)).await
    }

    /// Time for an election on a busy machine, and for a second one caused by the load.
    fn recovery(&self) -> Duration {
        Duration::from_secs(20)
    }
}
