//! C1: at any moment at most one client holds a lock.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_history::{Checker, Grade, History, Rule};
use tokio::task::{JoinSet, yield_now};

use crate::{
    Claim, Contestant, Failure, Figure, Granted, Hold, Nature, Outcome, Player, Scribe, Stage,
};

pub(super) const CLAIM: Claim = Claim {
    number: 1,
    title: "Mutual exclusion",
    claimed: "At any moment at most one client holds a lock.",
    done: "Eight clients, each with connections of its own, take one lock in turns as fast as they \
           can, and look at their own hold while they have it.",
    measured: "Pairs of holds that are certain at the same time, of all grants.",
    threshold: "Holds if no two certain holds overlap and tokens rise.",
};

const CLIENTS: usize = 8;
const TTL: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let lock: Box<dyn Contestant> = match stage.is_swapped() {
        true => Box::new(NoLock),
        false => Box::new(stage.distlock().await?),
    };
    let history = compete(stage, &*lock).await?;
    let checker = Checker::new().tokens(Grade::Strict);
    let report = checker.check(&history)?;
    let (overlaps, granted) = (report.count(Rule::Exclusion), report.summary.granted);
    let kept = report.is_clean() && granted > 0;
    let happened = format!("{granted} grants to {CLIENTS} clients, {overlaps} pairs of holders");
    let side = lock.side(kept, happened.clone());
    Ok(Outcome::holds_if(kept, happened)
        .side(side.traced(history, &checker)?)
        .figure(Figure::count("pairs of holders at once", overlaps as f64, "pairs"))
        .figure(Figure::count("grants", granted as f64, "")))
}

/// All clients take turns at once.
async fn compete(stage: &Stage, lock: &dyn Contestant) -> Result<History, Failure> {
    let (trace, name) = (stage.trace(&lock.label()), stage.name("lock"));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let (player, scribe) = (lock.client().await?, trace.client(format!("client {number}")));
        let rounds = stage.quick_or_full(10, 40);
        clients.spawn(take_turns(player, scribe, name.clone(), rounds));
    }
    while let Some(client) = clients.join_next().await {
        client??;
    }
    Ok(trace.history())
}

async fn take_turns(
    player: Arc<dyn Player>,
    scribe: Scribe,
    name: String,
    rounds: usize,
) -> Result<(), Failure> {
    for _ in 0..rounds {
        let entry = scribe.asks(&name);
        let Some(hold) = player.acquire(&name, TTL, PATIENCE).await? else {
            entry.ended("waited in vain");
            continue;
        };
        entry.granted(hold.token());
        for _ in 0..3 {
            yield_now().await;
            entry.believes(|| hold.believes());
        }
        entry.gives_back(hold).await?;
    }
    Ok(())
}

/// The control: a lock that grants every attempt.
#[derive(Clone)]
struct NoLock;

#[async_trait]
impl Contestant for NoLock {
    fn label(&self) -> String {
        "no lock".into()
    }

    fn nature(&self) -> Nature {
        Nature::Simulation
    }

    async fn client(&self) -> Result<Arc<dyn Player>, Failure> {
        Ok(Arc::new(Self))
    }
}

#[async_trait]
impl Player for NoLock {
    async fn acquire(&self, _name: &str, _ttl: Duration, _wait: Duration) -> Granted {
        Ok(Some(Box::new(Self)))
    }
}

#[async_trait]
impl Hold for NoLock {
    async fn release(self: Box<Self>) -> Result<bool, Failure> {
        Ok(true)
    }
}
