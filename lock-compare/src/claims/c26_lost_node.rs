//! C26: whether locks survive the loss of a node with its data.

use std::time::Duration;

use tokio::time::timeout;

use crate::{
    Claim, Contestant, Distlock, Failure, Figure, Give, Ground, Outcome, Plot, Printed, Side,
    Stage, Store, Take, Topic,
    cluster::{ReplicatedRedis, Service, sentinel_keys},
    scenario::{FirstHolder, Meeting, Second},
    time::Time,
};

pub(super) const CLAIM: Claim = Claim {
    number: 26,
    title: "Losing a node with its data",
    claimed: "The lock service survives the loss of a node with its data: true for etcd and \
              ZooKeeper with three nodes, not for Redis with a replica, meaningless for one node.",
    done: "A has a lock, a node is lost for ever (of three, the leader; of Redis, the primary whose \
           replicas lag; a server alone, which an empty one replaces), and B asks what is left. In \
           the control two of three nodes are lost, the replicas do not lag, and the server alone \
           comes back with its data.",
    measured: "Whether A's lock is still there for B, and whether new locks are granted.",
    threshold: "With three nodes, holds if B has to wait and a new lock is granted; else breaks if \
                B gets A's lock.",
};

const TTL: Duration = Duration::from_secs(10);
const LONG: Duration = Duration::from_secs(60);
const WAIT: Duration = Duration::from_secs(1);
const ELECTION: Duration = Duration::from_secs(30);
const NO_ELECTION: Duration = Duration::from_secs(3);

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    match stage.store {
        Store::Redis => primary(stage).await,
        Store::MySql | Store::Postgres => alone(stage).await,
        _ => match Service::start(stage.store).await? {
            Some(service) => of_three(stage, &service).await,
            None => Ok(Outcome::cannot_be_asked(
                "the store is a part of this machine, and is lost only with all its clients",
            )),
        },
    }
}

/// One of three nodes is lost.
async fn of_three(stage: &Stage, service: &Service) -> Result<Outcome, Failure> {
    let (left, right) = (service.side()?, service.side()?);
    let old = service.leader().await?;
    let rest = [(old + 1) % 3, (old + 2) % 3];
    let (a, b) =
        (service.distlock(&left, &[old, rest[0], rest[1]]), service.distlock(&right, &rest));
    let mut holder = FirstHolder::take(stage, &a, "kept", TTL).await?;
    let (lost, limit) = stage.pick((vec![old], ELECTION), (vec![old, rest[0]], NO_ELECTION));
    let time = Time::start();
    for node in &lost {
        service.node(*node).kill();
        holder.breaks("loss", &format!("node {}", node + 1));
    }
    service.leader_after(old, limit).await;
    let met = holder.meets(&b, WAIT).await?;
    let fresh = async { b.client().await?.acquire(&stage.name("new"), TTL, limit).await };
    let served = matches!(timeout(limit, fresh).await, Ok(Ok(Some(_))));
    let after = Figure::time("from the loss to a new lock", time.since());
    let kept = met.second == Second::Waits && met.kept;
    let others = if served { "the others grant new locks" } else { "nobody gets a new lock" };
    let sentence = format!("{} of 3 nodes is lost: {}; {others}", lost.len(), met.told());
    let side = side(met, "distlock")?;
    let plot = plot(stage, &side);
    Ok(Outcome::holds_if(kept && served, sentence).side(side).figure(after).plots(plot))
}

/// The primary of a Redis is lost.
async fn primary(stage: &Stage) -> Result<Outcome, Failure> {
    let redis = ReplicatedRedis::start(!stage.is_swapped()).await?;
    let lock = Printed::new(sentinel_keys(&redis.servers)?, Take::OneStep, Give::CompareAndDel);
    let distlock = Distlock::new(redis.servers.url());
    let mut printed = FirstHolder::take(stage, &lock, "printed", LONG).await?;
    let mut own = FirstHolder::take(stage, &distlock, "distlock", LONG).await?;
    redis.kill_primary().await?;
    printed.breaks("loss", "the primary");
    own.breaks("loss", "the primary");
    redis.promoted().await?;
    let (printed, own) = tokio::try_join!(printed.meets(&lock, WAIT), own.meets(&distlock, WAIT))?;
    let lost = printed.second == Second::GotIn && own.second == Second::GotIn;
    let told = printed.told();
    let sentence = format!("the primary is lost and a replica takes its place: {told}");
    let after = Figure::time("from the loss to the answer of the new primary", printed.after);
    let printed = side(printed, "SET NX PX, through the sentinels")?;
    let own = side(own, "distlock, through the sentinels")?;
    let plot = plot(stage, &printed);
    Ok(Outcome::breaks_if(lost, sentence).sides([printed, own]).figure(after).plots(plot))
}

/// The only node is lost, or comes back.
async fn alone(stage: &Stage) -> Result<Outcome, Failure> {
    let ground = stage.own().await?;
    let server = ground.server().ok_or("a private store has a server")?;
    let lock = Distlock::new(ground.url());
    let mut holder = FirstHolder::take(stage, &lock, "kept", LONG).await?;
    server.kill();
    holder.breaks("loss", "the only server");
    let dead = lock.client().await.err().ok_or("a dead server answers")?;
    let (what, left): (_, Option<Ground>) = match stage.is_swapped() {
        true => {
            server.restart().await?;
            ("the server comes back with its data", None)
        }
        false => ("an empty server takes its place", Some(stage.own().await?)),
    };
    let url = left.as_ref().unwrap_or(&ground).url();
    let met = holder.meets(&Distlock::new(url), WAIT).await?;
    let lost = met.second == Second::GotIn;
    let sentence = format!("the only node is lost and {what}: {}", met.told());
    let after = Figure::time("from the loss to B's answer", met.after);
    let side = side(met, "distlock")?.evidence(format!("between the two: {dead}"));
    let plot = plot(stage, &side);
    Ok(Outcome::breaks_if(lost, sentence).side(side).figure(after).plots(plot))
}

/// The lock is lost if B gets in, whatever A believes.
fn side(met: Meeting, label: &str) -> Result<Side, Failure> {
    let well = met.second != Second::GotIn;
    Ok(Side { well, ..met.side(label)? })
}

fn plot(stage: &Stage, side: &Side) -> Option<Plot> {
    side.plot(&format!("A node of {} is lost", stage.store), Topic::Failover)
}
