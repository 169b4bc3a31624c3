//! C8: a failover of Redis gives the same lock to two clients.

use std::time::Duration;

use async_trait::async_trait;
use distlock::Requirement;

use crate::{
    Claim, Distlock, Experiment, Failure, Figure, Give, Outcome, Plot, Printed, Side, Stage, Store,
    Take, Topic,
    cluster::{ReplicatedRedis, sentinel_keys},
    scenario::{FirstHolder, Meeting, Second},
};

/// C8.
pub(crate) struct Failover;

const CLAIM: Claim = Claim {
    number: 8,
    title: "A failover loses locks",
    claimed: "Redis replicates after it has answered: a primary that dies before its replica has \
              the key lets a second client get the same lock from the promoted replica.",
    done: "A takes the lock on a primary whose two replicas get nothing any more, the primary is \
           killed, three sentinels promote a replica, and B asks there; the client of SET NX PX \
           finds the primary through the sentinels. In the control the replicas have the key.",
    measured: "Whether B gets the lock while A believes that it holds it.",
    threshold: "Breaks if both hold the lock of SET NX PX at the same time.",
};

/// Much longer than a failover.
const TTL: Duration = Duration::from_secs(60);

#[async_trait]
impl Experiment for Failover {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    fn is_harmless(&self) -> bool {
        false
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        match stage.store {
            Store::Redis => play(stage).await,
            _ => Ok(Outcome::cannot_be_asked(
                "it is about Redis with replicas and sentinels; C10 and C26 ask the other stores \
                 what they lose with a node",
            )),
        }
    }
}

async fn play(stage: &Stage) -> Result<Outcome, Failure> {
    let redis = ReplicatedRedis::start(!stage.is_swapped()).await?;
    let printed = Printed::new(sentinel_keys(&redis.servers)?, Take::OneStep, Give::CompareAndDel);
    let distlock = Distlock::new(redis.url());
    let refused = refusal(&redis.url()).await?;
    let mut lost = FirstHolder::take(stage, &printed, "SET NX PX", TTL).await?;
    let mut stays = FirstHolder::take(stage, &distlock, "distlock", TTL).await?;
    let mut moved = FirstHolder::take(stage, &distlock, "distlock, moved by hand", TTL).await?;
    redis.kill_primary().await?;
    for holder in [&mut lost, &mut stays, &mut moved] {
        holder.breaks("kill", "the primary");
    }
    let new = redis.next_url().await?;
    let wait = Duration::from_millis(300);
    let new = Distlock::new(new);
    let (lost, stays, moved) = tokio::try_join!(
        lost.meets(&printed, wait),
        stays.meets(&distlock, wait),
        moved.meets(&new, wait),
    )?;

    let (seen, honest) = (lost.both(), stays.second != Second::GotIn);
    let sentence = format!(
        "SET NX PX: {}; distlock, which knows one server: {}; distlock, pointed at the new primary \
         by hand: {}",
        lost.told(),
        stays.told(),
        moved.told(),
    );
    let gap = Figure::time("from the kill to the answer of the new primary", lost.after);
    let printed = side(lost, "SET NX PX, through the sentinels", [])?;
    let stays = side(stays, "distlock, at the old primary's address", [refused])?;
    let moved = side(moved, "distlock, pointed at the new primary by hand", [])?;
    let plots: Vec<_> = [&printed, &moved].into_iter().filter_map(plot).collect();
    let outcome =
        Outcome::breaks_if(seen && honest, sentence).sides([printed, stays, moved]).figure(gap);
    Ok(outcome.plots(plots))
}

/// Returns distlock's error for a program that needs a lock to survive the loss of a node.
async fn refusal(url: &str) -> Result<String, Failure> {
    match distlock::connect(url).require(Requirement::SurvivesFailover).await {
        Err(error) => Ok(format!("a program that requires it is told: {error}")),
        Ok(_) => Err("distlock promises that locks of Redis survive a failover".into()),
    }
}

fn side<const N: usize>(met: Meeting, label: &str, more: [String; N]) -> Result<Side, Failure> {
    let side = Side::new(label, met.nature, !met.both(), met.told());
    Ok(side.story(met.evidence()).story(more).played(met.history)?)
}

fn plot(side: &Side) -> Option<Plot> {
    side.plot("A failover of Redis", Some(Topic::Failover))
}
