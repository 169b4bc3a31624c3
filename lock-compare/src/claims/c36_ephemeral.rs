//! C36: whether an ephemeral node ends with its connection.

use std::time::Duration;

use lock_lab::{AnyServer, Proxy};
use tokio::time::{sleep, timeout};

use crate::{Claim, Failure, Ground, Nature, Outcome, Side, Stage};

pub(super) const CLAIM: Claim = Claim {
    number: 36,
    title: "An ephemeral node ends with its connection",
    claimed: "An ephemeral node goes when the connection of its owner ends.",
    done: "The owner's connection is reset while it has an ephemeral node, and a lock of distlock; \
           the other stores are asked for the lock alone. In the control the session ends, not the \
           connection.",
    measured: "Whether the node and the lock are there when the owner is back on a new connection.",
    threshold: "Holds if they are gone, differs if they are there.",
};

const TTL: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(10);

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    if stage.store.is_embedded() {
        return Ok(Outcome::cannot_be_asked("the store has no connections"));
    }
    let ground = stage.own().await?;
    let server = ground.server().ok_or("a private store has a server")?;
    let proxy = Proxy::start(server.addr()).await?;
    let node = node(stage, server, &proxy).await?;
    let (stays, ours) = lock(stage, &ground, server, &proxy).await?;
    let node_stays = node.as_ref().map_or(stays, |(there, _)| *there);
    let ends = if stage.is_swapped() { "session" } else { "connection" };
    let what = if node.is_some() { "node and the lock" } else { "lock" };
    let sentence = match (node_stays, stays) {
        (true, true) => format!("after the end of the {ends} the {what} stay"),
        (false, false) => format!("after the end of the {ends} the {what} are gone"),
        _ => format!("after the end of the {ends} one of the two is gone"),
    };
    let sentence = match node.is_some() {
        true => sentence,
        false => sentence.replace("stay", "stays").replace("are", "is"),
    };
    let outcome = Outcome::holds_if(!stays && !node_stays, sentence);
    Ok(outcome.sides(node.map(|(_, side)| side)).side(ours))
}

/// distlock's lock after its connection is reset, or after its session ends.
async fn lock(
    stage: &Stage,
    ground: &Ground,
    server: &AnyServer,
    proxy: &Proxy,
) -> Result<(bool, Side), Failure> {
    let (owner, other) =
        (distlock::connect(server.url_via(proxy)).await?, distlock::connect(ground.url()).await?);
    let (name, before) = (stage.name("lock"), proxy.stats());
    let guard = owner.lock(&name)?.ttl(TTL).acquire().await?;
    if stage.is_swapped() {
        owner.close().await?;
    } else {
        proxy.reset();
        // The lock is held, and renewed on a new connection.
        let renewed = async {
            while guard.is_valid() && guard.renew().await.is_err() {
                sleep(PAUSE).await;
            }
        };
        timeout(PATIENCE, renewed).await?;
    }
    let connections = proxy.stats().connections_total - before.connections_total;
    let taken = other.lock(&name)?.ttl(TTL).try_acquire().await?;
    let stays = taken.is_none() && guard.is_valid();
    let happened = match stays {
        true => "the lock stays, and nobody else gets it",
        false => "the lock is gone, and somebody else gets it",
    };
    let side = Side::new("distlock", Nature::Distlock, stays != stage.is_swapped(), happened);
    let lines = [
        format!("connections of the owner since the grant: {connections}"),
        format!("the owner believes that it holds the lock: {}", guard.is_valid()),
    ];
    Ok((stays, side.story(lines)))
}

/// An ephemeral node, on a store that has them.
async fn node(
    stage: &Stage,
    server: &AnyServer,
    proxy: &Proxy,
) -> Result<Option<(bool, Side)>, Failure> {
    #[cfg(feature = "zookeeper")]
    if stage.store == crate::Store::ZooKeeper {
        let (via, direct) = (proxy.addr().to_string(), server.addr().to_string());
        let node = crate::bare::Ephemeral::make(&via, &direct, &stage.name("node")).await?;
        let before = server.counters().await?.get("ephemerals");
        let stays = match stage.is_swapped() {
            true => node.after_end().await?,
            false => node.after_reset(|| proxy.reset()).await?,
        };
        let after = server.counters().await?.get("ephemerals");
        let happened = if stays { "the node is there" } else { "the node is gone" };
        let side = Side::new("an ephemeral node", Nature::AsPrinted, stays, happened);
        let line = format!("ephemeral nodes before: {before}, after: {after}");
        return Ok(Some((stays, side.evidence(line))));
    }
    let _ = (stage, server, proxy);
    Ok(None)
}
