//! C13: a waiter that dies in the middle of the queue must not let its successor in.

use std::{sync::Arc, time::Duration};

use distlock::Locks;
use lock_history::{Checker, Grade, Rule};
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{
    Actor, Claim, Contestant, Failure, KeySpace, Keys, Outcome, PrintedQueue, Side, Stage, Store,
    keys::{self, SimulatedKeys},
    printed_queue::queue_of,
};

pub(super) const CLAIM: Claim = Claim {
    number: 13,
    title: "A dead waiter lets nobody in",
    claimed: "A waiter that dies in the middle of the queue must not let its successor in early: \
              the wait is a loop, not one event.",
    done: "A holds the lock, B and C wait in this order, and B is killed. Played with a queue in \
           which one event is enough, with one that looks again, and with distlock.",
    measured: "Whether C gets in while A holds: pairs of holders at the same time.",
    threshold: "Breaks if one event lets C in beside A, and the loop and distlock do not.",
};

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(10);
/// Time in which the successor may still start to believe that it is its turn.
const GRACE: Duration = Duration::from_secs(1);

pub(super) async fn run(stage: &Stage) -> Result<Outcome, Failure> {
    let space: Arc<dyn KeySpace> = match stage.store {
        Store::Etcd | Store::ZooKeeper => {
            keys::of(stage.store, &stage.shared().await?.url()).await?
        }
        _ => Arc::new(SimulatedKeys::default()),
    };
    let (distlock, locks) = (stage.distlock().await?, Looker::Distlock(stage.connect().await?));
    let names = Looker::Keys(space.connect().await?);
    let in_a_loop = PrintedQueue::new(space);
    let one_event = in_a_loop.clone().one_event();
    let ours: (&dyn Contestant, _) = (&distlock, &locks);
    let wrong: (&dyn Contestant, _) = stage.pick((&one_event, &names), ours);
    let (wrong, right, ours) = tokio::try_join!(
        play(stage, wrong, "one event"),
        play(stage, (&in_a_loop, &names), "loop"),
        play(stage, ours, "distlock"),
    )?;
    let seen = !wrong.well && right.well && ours.well;
    let sentence = Side::summaries([&wrong, &ours]);
    let plot = wrong.plot(&format!("B dies in the queue on {}", stage.store), None);
    Ok(Outcome::breaks_if(seen, sentence).sides([wrong, right, ours]).plots(plot))
}

/// An observer of a queue's length.
enum Looker {
    Distlock(Locks),
    Keys(Arc<dyn Keys>),
}

impl Looker {
    /// Waits until the queue has this length, with the holder.
    async fn until(&self, name: &str, length: usize) -> Result<(), Failure> {
        loop {
            let now = match self {
                Self::Distlock(locks) => locks.inspect(name).await?.len(),
                Self::Keys(keys) => keys.names(&queue_of(name)).await?.len(),
            };
            if now == length {
                return Ok(());
            }
            sleep(LOOK).await;
        }
    }
}

/// A holds, B and C wait in this order, B is killed. After the store has dropped B, C has a second
/// to enter by mistake. Then A releases.
async fn play(
    stage: &Stage,
    (lock, looker): (&dyn Contestant, &Looker),
    what: &str,
) -> Result<Side, Failure> {
    let (name, trace) = (&*stage.name(what), stage.trace(&lock.label()));
    let ttl = stage.short_ttl();
    let (hold, holding) = trace.client("A").takes(&*lock.client().await?, name, ttl).await?;

    let (home, dying) = (Actor::start("B")?, trace.client("B").asks(name));
    let client = lock.client_in(&home).await?;
    let (b, key) = (client.clone(), name.to_owned());
    home.run(async move {
        // Runs in B's own runtime, which ends with B.
        tokio::spawn(async move { b.acquire(&key, ttl, PATIENCE).await });
    })
    .await?;
    looker.until(name, 2).await?;
    let (c, key, late) = (lock.client().await?, name.to_owned(), trace.client("C").asks(name));
    let entry = late.clone();
    let mut successor: JoinHandle<Result<_, Failure>> = tokio::spawn(async move {
        let hold = c.acquire(&key, ttl, PATIENCE).await?.ok_or("C waits in vain")?;
        entry.granted(hold.token());
        Ok((hold, c))
    });
    looker.until(name, 3).await?;

    let killed = trace.fault("kill", "B");
    home.kill(client);
    dying.ended("killed");
    timeout(PATIENCE, looker.until(name, 2)).await.map_err(|_| "B stays in the queue")??;
    let early = timeout(GRACE, &mut successor).await;
    holding.believes(|| hold.believes());
    let was_early = early.is_ok();
    if was_early {
        late.believes(|| true);
    }
    holding.gives_back(hold).await?;
    let (hold, _client) = match early {
        Ok(done) => done??,
        Err(_) => timeout(PATIENCE, successor).await???,
    };
    late.gives_back(hold).await?;
    drop(killed);
    let checker = Checker::new().tokens(Grade::None);
    let history = trace.history();
    let pairs = checker.check(&history)?.count(Rule::Exclusion);
    let happened = match pairs > 0 {
        true => "C gets in while A holds",
        false => "C gets in when A has released",
    };
    let side = lock
        .side(pairs == 0, happened)
        .evidence(format!("after B's death C believed to hold beside A: {was_early}"));
    Ok(side.traced(history, &checker)?)
}
