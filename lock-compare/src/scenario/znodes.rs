//! Clients queue up in ZooKeeper, and its nodes are inspected.

use std::{sync::Arc, time::Duration};

use lock_lab::AnyServer;
use tokio::{task::JoinSet, time::sleep};
use zookeeper_client::Client;

use crate::{
    Actor, Contestant, Distlock, Failure, Figure, Give, Nature, Outcome, Printed, Side, Stage,
    Take, keys,
};

const PATIENCE: Duration = Duration::from_secs(60);
const TTL: Duration = Duration::from_secs(4);
const LOOK: Duration = Duration::from_millis(20);
/// Number of checks for a waiter's node or watches.
const LOOKS: usize = 50;
const CLIENTS: usize = 4;

/// Plays it with distlock, and with a node that all clients watch.
pub(crate) async fn znodes(stage: &Stage) -> Result<Outcome, Failure> {
    let ground = stage.own().await?;
    let Some(AnyServer::ZooKeeper(server)) = ground.server() else {
        return Err("a server of our own is no ZooKeeper".into());
    };
    let space = keys::of(stage.store, &ground.url()).await?;
    let one_node = Printed::new(space, Take::OneStep, Give::CompareAndDel).watching();
    let one_node: Arc<dyn Contestant> = Arc::new(one_node);
    let distlock: Arc<dyn Contestant> = Arc::new(Distlock::new(ground.url()));
    let (first, second) = stage.pick((&distlock, &one_node), (&one_node, &distlock));
    let first = queue(&**first, server, &stage.name("first")).await?;
    let second = queue(&**second, server, &stage.name("second")).await?;
    let sentence = format!("{}: {}", first.label, first.words());
    let outcome = Outcome::holds_if(first.is_as_claimed(), sentence)
        .figure(Figure::count("ephemeral sequential znodes of 4 clients", first.nodes as f64, ""))
        .figure(Figure::count("clients told of the end of one before", first.told as f64, ""));
    Ok(outcome.sides([first.side(), second.side()]))
}

/// The bare client's and the server's view of a queue.
struct Queue {
    label: String,
    nature: Nature,
    /// Ephemeral nodes with a sequence number.
    nodes: usize,
    /// Notifications of the end of a node in the middle, minus notifications of the end of the last
    /// one.
    told: i64,
    /// Whether the dead holder's node is gone, and the next client holds.
    gone: bool,
    lines: Vec<String>,
}

impl Queue {
    fn is_as_claimed(&self) -> bool {
        (self.nodes, self.told, self.gone) == (CLIENTS, 1, true)
    }

    fn words(&self) -> String {
        format!(
            "{} ephemeral sequential znodes for {CLIENTS} clients, {} client is told of the end of \
             the node before its own, the dead holder's node goes with its session: {}",
            self.nodes, self.told, self.gone
        )
    }

    fn side(self) -> Side {
        let side = Side::new(&self.label, self.nature, self.is_as_claimed(), self.words());
        side.story(self.lines)
    }
}

/// A node: its path and its owner session.
type Node = (String, i64);

async fn queue(
    lock: &dyn Contestant,
    server: &lock_lab::ZooKeeper,
    name: &str,
) -> Result<Queue, Failure> {
    let bare = Client::connect(&server.addr().to_string()).await?;
    let home = Actor::start("A")?;
    let client = lock.client_in(&home).await?;
    let hold = client.acquire_in(&home, name, TTL, PATIENCE).await?;
    let hold = hold.ok_or("A does not get a free lock")?;
    let mut waiting = JoinSet::new();
    for place in 1..CLIENTS {
        let (client, key) = (lock.client().await?, name.to_owned());
        waiting.spawn(async move { client.acquire(&key, TTL, PATIENCE).await });
        // A client that waits for one shared node has no node of its own.
        for _ in 0..LOOKS {
            if nodes(&bare, name).await?.len() > place {
                break;
            }
            sleep(LOOK).await;
        }
    }
    let found = nodes(&bare, name).await?;
    let told = told(&bare, server, &found).await?;
    let line = |(path, owner): &Node| format!("{path}: session {owner:#x}");
    let lines = found.iter().map(line).collect();

    home.kill((client, hold));
    let mut gone = false;
    while let Some(next) = waiting.join_next().await {
        // A client with a deleted node has lost its place.
        let Ok(Some(hold)) = next? else { continue };
        if let Some((path, owner)) = found.first() {
            let now = bare.check_stat(path).await?;
            gone |= now.is_none_or(|stat| stat.ephemeral_owner != *owner);
        }
        hold.release().await?;
    }
    let nodes = found.iter().filter(|(path, owner)| *owner != 0 && sequence(path).is_some());
    let (label, nature, nodes) = (lock.label(), lock.nature(), nodes.count());
    Ok(Queue { label, nature, nodes, told, gone, lines })
}

/// Deletes the last node, then one in the middle. Returns how many more clients the second one
/// notifies.
async fn told(bare: &Client, server: &lock_lab::ZooKeeper, nodes: &[Node]) -> Result<i64, Failure> {
    let [_, middle, _, last] = nodes else { return Ok(0) };
    // Each client watches its own node and the one before it.
    for _ in 0..LOOKS {
        if watches(server).await? >= 2 * nodes.len() as u64 - 1 {
            break;
        }
        sleep(LOOK).await;
    }
    let end = async |(path, _): &Node| -> Result<i64, Failure> {
        let before = server.counters().await?;
        bare.delete(path, None).await?;
        let since = server.counters().await?.since(&before);
        let fired = since.iter().filter(|(what, _)| what.starts_with("fired."));
        Ok(i64::try_from(fired.map(|(_, count)| count).sum::<u64>())?)
    };
    let last = end(last).await?;
    Ok(end(middle).await? - last)
}

/// How many watches of children there are: by them clients watch nodes that have none. By others they
/// watch the token floor, and these alone are listed.
async fn watches(server: &lock_lab::ZooKeeper) -> Result<u64, Failure> {
    let listed = server.four_letter("wchp").await?;
    let others = listed.lines().filter(|line| line.starts_with('\t')).count() as u64;
    Ok(server.counters().await?.get("watches").saturating_sub(others))
}

/// Returns the nodes of a lock, in order: the nodes of a directory, or the one that all clients
/// want.
async fn nodes(bare: &Client, name: &str) -> Result<Vec<Node>, Failure> {
    let flat = format!("/{}", name.replace('/', "."));
    let mut paths = Vec::new();
    if bare.check_stat(&flat).await?.is_some() {
        paths.push(flat);
    }
    let folder = format!("/locks/{}", name.replace('/', "%2F"));
    if bare.check_stat(&folder).await?.is_some() {
        let children = bare.list_children(&folder).await?;
        paths.extend(children.iter().map(|child| format!("{folder}/{child}")));
    }
    paths.sort_by_key(|path| sequence(path));
    let mut nodes = Vec::new();
    for path in paths {
        if let Some(stat) = bare.check_stat(&path).await? {
            nodes.push((path, stat.ephemeral_owner));
        }
    }
    Ok(nodes)
}

fn sequence(path: &str) -> Option<u32> {
    path.get(path.len().checked_sub(10)?..)?.parse().ok()
}
