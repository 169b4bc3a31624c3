//! C8: a failover of Redis gives the same lock to two clients.

use std::time::Duration;

use distlock::Requirement;

use crate::{
    Claim, Contestant, Distlock, Failure, Figure, Give, Nature, Outcome, Printed, Side, Stage,
    Store, Take, Topic,
    cluster::{ReplicatedRedis, sentinel_keys},
    scenario::FirstHolder,
};

pub(super) const CLAIM: Claim = Claim {
    number: 8,
    title: "A failover loses locks",
    claimed: "Redis replicates after it has answered: a primary that dies before its replica has \
              the key lets a second client get the same lock from the promoted replica.",
    done: "A takes the lock on a primary whose two replicas get nothing any more, the primary is \
           killed, three sentinels promote a replica, and B asks there; both clients find the \
           primary through the sentinels. In the control the replicas have the key.",
    measured: "Whether B gets the lock while A believes that it holds it.",
    threshold: "Breaks if both hold the lock of SET NX PX at the same time.",
};

/// Much longer than a failover.
const TTL: Duration = Duration::from_secs(60);
/// Longest time that B waits.
const WAIT: Duration = Duration::from_millis(300);
/// All that there are.
const REPLICAS: usize = 2;
const WAITING: &str = "distlock, which waits for both replicas";

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    match stage.store {
        Store::Redis => play(stage).await,
        _ => Ok(Outcome::cannot_be_asked(
            "it is about Redis with replicas and sentinels; C10 and C26 ask the other stores \
             what they lose with a node",
        )),
    }
}

async fn play(stage: &Stage) -> Result<Outcome, Failure> {
    let redis = ReplicatedRedis::start(!stage.is_swapped()).await?;
    let printed = Printed::new(sentinel_keys(&redis.servers)?, Take::OneStep, Give::CompareAndDel);
    let url = redis.servers.url();
    let (own, waiting) =
        (Distlock::new(&url), Distlock::new(format!("{url}?wait_replicas={REPLICAS}")));
    let refused = refusal(&url).await?;
    let mut lost = FirstHolder::take(stage, &printed, "SET NX PX", TTL).await?;
    let mut told = FirstHolder::take(stage, &own, "distlock", TTL).await?;
    let mut kept = replicated(stage, &waiting).await?;
    redis.kill_primary().await?;
    for holder in [&mut lost, &mut told].into_iter().chain(kept.as_mut().ok()) {
        holder.breaks("kill", "the primary");
    }
    redis.promoted().await?;
    let kept = async {
        match kept {
            Ok(holder) => holder.meets(&waiting, WAIT).await?.side(WAITING),
            Err(why) => Ok(never_granted(why)),
        }
    };
    let (lost, told, kept) =
        tokio::try_join!(lost.meets(&printed, WAIT), told.meets(&own, WAIT), kept)?;

    let gap = Figure::time("from the kill to the answer of the new primary", lost.after);
    let seen = lost.both() && kept.well;
    let printed = lost.side("SET NX PX, through the sentinels")?;
    let own = told.side("distlock, through the sentinels")?.evidence(refused);
    let plot = |side: &Side| side.plot("A failover of Redis", Topic::Failover);
    let plots: Vec<_> = [&printed, &own].into_iter().filter_map(plot).collect();
    let sides = [printed, own, kept];
    let outcome = Outcome::breaks_if(seen, Side::summaries(&sides)).sides(sides).figure(gap);
    Ok(outcome.plots(plots))
}

/// A asks for a lock that counts when all replicas have it. Returns the holder, or the reason why
/// A gets no lock.
async fn replicated(
    stage: &Stage,
    lock: &Distlock,
) -> Result<Result<FirstHolder, String>, Failure> {
    let client = lock.client().await?;
    client.close().await?;
    let taken = FirstHolder::take(stage, lock, "distlock that waits for replicas", TTL).await;
    Ok(taken.map_err(|failure| failure.to_string()))
}

fn never_granted(why: String) -> Side {
    let happened = "A gets no lock, because the replicas do not have it";
    Side::new(WAITING, Nature::Distlock, true, happened).evidence(format!("A is told: {why}"))
}

/// Returns distlock's error for a program that needs a lock to survive the loss of a node.
async fn refusal(url: &str) -> Result<String, Failure> {
    match distlock::connect(url).require(Requirement::SurvivesFailover).await {
        Err(error) => Ok(format!("a program that requires it is told: {error}")),
        Ok(_) => Err("distlock promises that locks of Redis survive a failover".into()),
    }
}
