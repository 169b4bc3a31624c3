//! C13: a waiter that dies in the middle of the queue must not let its successor in.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_history::{Checker, Grade, Rule};

use crate::{
    Claim, Contestant, Experiment, Failure, KeySpace, Outcome, PrintedQueue, Side, Stage, Store,
    keys,
    keys::SimulatedKeys,
    scenario::{Looker, dead_waiter},
};

/// C13.
pub(crate) struct DeadWaiter;

const CLAIM: Claim = Claim {
    number: 13,
    title: "A dead waiter lets nobody in",
    claimed: "A waiter that dies in the middle of the queue must not let its successor in early: \
              the wait is a loop, not one event.",
    done: "A holds the lock, B and C wait in this order, and B is killed. Played with a queue in \
           which one event is enough, with one that looks again, and with distlock.",
    measured: "Whether C gets in while A holds: pairs of holders at the same time.",
    threshold: "Breaks if one event lets C in beside A, and the loop and distlock do not.",
};

#[async_trait]
impl Experiment for DeadWaiter {
    fn claim(&self) -> &'static Claim {
        &CLAIM
    }

    fn is_harmless(&self) -> bool {
        false
    }

    async fn run(&self, stage: &Stage) -> Result<Outcome, Failure> {
        let ground = stage.shared().await?;
        let space: Arc<dyn KeySpace> = match stage.store {
            Store::Etcd | Store::ZooKeeper => keys::of(stage.store, &ground).await?,
            _ => Arc::new(SimulatedKeys::default()),
        };
        let distlock = Lock {
            lock: Arc::new(stage.distlock().await?),
            looker: Arc::new(Looker::Distlock(stage.connect().await?)),
        };
        let looker = Arc::new(Looker::of_keys(&space).await?);
        let queue = |queue| Lock { lock: Arc::new(queue), looker: looker.clone() };
        let one_event = queue(PrintedQueue::new(space.clone()).one_event());
        let in_a_loop = queue(PrintedQueue::new(space.clone()));
        let wrong = stage.pick(&one_event, &distlock);
        let (wrong, right, ours) = tokio::try_join!(
            play(stage, wrong, "one event"),
            play(stage, &in_a_loop, "loop"),
            play(stage, &distlock, "distlock"),
        )?;
        let seen = !wrong.well && right.well && ours.well;
        let sentence = Side::summaries([&wrong, &ours]);
        let plot = wrong.plot(&format!("B dies in the queue on {}", stage.store), None);
        Ok(Outcome::breaks_if(seen, sentence).sides([wrong, right, ours]).plots(plot))
    }
}

struct Lock {
    lock: Arc<dyn Contestant>,
    looker: Arc<Looker>,
}

async fn play(stage: &Stage, Lock { lock, looker }: &Lock, what: &str) -> Result<Side, Failure> {
    let (name, trace) = (stage.name(what), stage.trace(&lock.label()));
    let ttl = stage.quick_or_full(Duration::from_secs(2), Duration::from_secs(4));
    let dead = dead_waiter(&**lock, looker, &trace, &name, ttl).await?;
    let checker = Checker::new().tokens(Grade::None);
    let pairs = checker.check(&dead.history)?.count(Rule::Exclusion);
    let happened = match pairs > 0 {
        true => "C gets in while A holds",
        false => "C gets in when A has released",
    };
    let side = Side::new(lock.label(), lock.nature(), pairs == 0, happened)
        .evidence(format!("after B's death C believed to hold beside A: {}", dead.early));
    Ok(side.traced(dead.history, &checker)?)
}
