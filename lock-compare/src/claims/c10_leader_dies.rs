//! C10: a granted lock is on a majority, so that the death of the leader loses nothing.

use std::time::Duration;

use crate::{
    Claim, Failure, Figure, Outcome, Side, Stage, Store, Topic,
    cluster::Service,
    scenario::{FirstHolder, Meeting, Second},
};

pub(super) const CLAIM: Claim = Claim {
    number: 10,
    title: "The leader's death loses nothing",
    claimed: "A lock that etcd has granted is on a majority before the client hears of it: killing \
              the leader loses nothing.",
    done: "A gets the lock from three nodes, the leader is killed right after, and B asks the other \
           two when they have a new leader; ZooKeeper is asked the same. In the control two nodes \
           are killed, so that no majority is left.",
    measured: "Whether A still holds the lock and B has to wait, by the store's own lock and by \
               distlock.",
    threshold: "Holds if there is a new leader, B does not get in, and A's release finds the lock \
                its own.",
};

/// Longer than an election on a loaded machine, and ZooKeeper's maximum here.
const TTL: Duration = Duration::from_secs(10);
const WAIT: Duration = Duration::from_secs(1);
/// Longest wait for a new leader. With a majority an election takes 1 s to 3 s.
const ELECTION: Duration = Duration::from_secs(30);
const NO_ELECTION: Duration = Duration::from_secs(3);

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    match Service::start(stage.store).await? {
        Some(service) => play(stage, &service).await,
        None => Ok(Outcome::cannot_be_asked(match stage.store {
            Store::Redis => "one primary grants, and nobody waits for a majority: C8 asks that",
            _ => "the store is one node, which has no majority",
        })),
    }
}

async fn play(stage: &Stage, service: &Service) -> Result<Outcome, Failure> {
    let (left, right) = (service.side()?, service.side()?);
    let old = service.leader().await?;
    let rest = [(old + 1) % 3, (old + 2) % 3];
    let natives =
        [service.native(&left, &[old, rest[0], rest[1]])?, service.native(&right, &rest)?];
    let ours = [service.distlock(&left, &[old, rest[0], rest[1]]), service.distlock(&right, &rest)];
    let mut native = FirstHolder::take(stage, &natives[0], "native", TTL).await?;
    let mut own = FirstHolder::take(stage, &ours[0], "distlock", TTL).await?;
    let (victims, limit) = stage.pick((vec![old], ELECTION), (vec![old, rest[0]], NO_ELECTION));
    for victim in &victims {
        service.node(*victim).kill();
    }
    let target = if victims.len() == 1 { "the leader" } else { "the leader and a follower" };
    native.breaks("kill", target);
    own.breaks("kill", target);
    let new = service.leader_after(old, limit).await;
    let (native, own) = tokio::join!(native.meets(&natives[1], WAIT), own.meets(&ours[1], WAIT));
    judge(stage, target, new, native?, own?)
}

fn judge(
    stage: &Stage,
    target: &str,
    new: Option<usize>,
    native: Meeting,
    own: Meeting,
) -> Result<Outcome, Failure> {
    let kept = |met: &Meeting| met.second == Second::Waits && met.first_believes && met.kept;
    let seen = new.is_some() && kept(&native) && kept(&own);
    let leads = match new {
        Some(_) => "another node leads",
        None => "no node leads any more",
    };
    let sentence =
        format!("after the death of {target} {leads}; {}: {}", native.lock, native.told());
    let after = Figure::time("from the kill to B's answer", native.after);
    let side = |met: Meeting| -> Result<Side, Failure> {
        let (well, label) = (met.second == Second::Waits && met.kept, met.lock.clone());
        Ok(Side { well, ..met.side(&label)? })
    };
    let sides = [side(native)?, side(own)?];
    let title = format!("The leader of {} dies", stage.store);
    let plots: Vec<_> =
        sides.iter().filter_map(|side| side.plot(&title, Topic::Failover)).collect();
    Ok(Outcome::holds_if(seen, sentence).sides(sides).figure(after).plots(plots))
}
