//! A waiter dies in the middle of the queue, while the holder still holds.

use std::{sync::Arc, time::Duration};

use distlock::Locks;
use lock_history::History;
use tokio::{
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{Actor, Contestant, Failure, KeySpace, Keys, Trace, printed_queue::queue_of};

const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(10);
/// Time in which the successor may still start to believe that it is its turn.
const GRACE: Duration = Duration::from_secs(1);

/// An observer of a queue's length.
pub(crate) enum Looker {
    Distlock(Locks),
    Keys(Arc<dyn Keys>),
}

impl Looker {
    pub(crate) async fn of_keys(keys: &Arc<dyn KeySpace>) -> Result<Self, Failure> {
        Ok(Self::Keys(keys.connect().await?))
    }

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

/// The result.
pub(crate) struct DeadWaiter {
    /// Whether the successor entered while the holder held the lock.
    pub early: bool,
    /// The trace.
    pub history: History,
}

/// A holds, B and C wait in this order, B is killed. After the store has dropped B, C has a second
/// to enter by mistake. Then A releases.
pub(crate) async fn dead_waiter(
    lock: &dyn Contestant,
    looker: &Looker,
    trace: &Trace,
    name: &str,
    ttl: Duration,
) -> Result<DeadWaiter, Failure> {
    let holding = trace.client("A").asks(name);
    let hold = lock.client().await?.acquire(name, ttl, PATIENCE).await?;
    let hold = hold.ok_or("A does not get a free lock")?;
    holding.granted(hold.token());

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
    Ok(DeadWaiter { early: was_early, history: trace.history() })
}
