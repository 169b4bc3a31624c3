//! A waiter loses its place while it waits, and the holder before it leaves.

use std::time::Duration;

use async_trait::async_trait;
use lock_history::{Checker, Grade, Rule};
use tokio::time::{sleep, timeout};

use crate::{Failure, Hold, Nature, Player, Side, Trace};

const TTL: Duration = Duration::from_secs(8);
/// Longest wait for B's belief, or for the report to B, after the client before it has left.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time that a holder works, or a client that believes it is one.
const WORK: Duration = Duration::from_millis(200);

pub(crate) enum Belief {
    /// It believes that it holds the lock, for this reason. A client of distlock can be asked
    /// again.
    Holds(String, Option<Box<dyn Hold>>),
    /// It knows that it does not hold the lock.
    Told(String),
}

/// B: a waiting client.
#[async_trait]
pub(crate) trait Waiter: Send + Sync {
    /// Joins the queue behind one holder. Returns after its place exists.
    async fn join(&self, name: &str) -> Result<(), Failure>;

    /// Removes its place without the client's knowledge. Returns after it is gone.
    async fn lose_place(&self, name: &str) -> Result<(), Failure>;

    /// Returns after another client is in the queue behind the holder.
    async fn see_next(&self, name: &str) -> Result<(), Failure>;

    /// Returns its final belief.
    async fn belief(&self) -> Result<Belief, Failure>;
}

/// Plays it. A holds the lock, B waits, B's place is removed. C joins the queue, A releases, C
/// enters. Then B's belief is read. Also returns the number of pairs of holders.
pub(crate) async fn revoked_waiter(
    (a, c): (&dyn Player, &dyn Player),
    (b, label, nature): (&dyn Waiter, &str, Nature),
    trace: &Trace,
    name: &str,
) -> Result<(Side, usize), Failure> {
    let (hold, holding) = trace.client("A").takes(a, name, TTL).await?;
    let waiting = trace.client("B").asks(name);
    b.join(name).await?;
    b.lose_place(name).await?;
    let next = trace.client("C").asks(name);
    let release = async {
        b.see_next(name).await?;
        holding.gives_back(hold).await
    };
    let (got, released) = tokio::join!(c.acquire(name, TTL, PATIENCE), release);
    released?;
    let got = got?.ok_or("C waits in vain")?;
    next.granted(got.token());
    let belief = timeout(PATIENCE, b.belief()).await;
    let belief = belief.map_err(|_| "B neither believes nor is told anything")??;
    let (told, believed) = match belief {
        Belief::Holds(why, hold) => {
            waiting.granted(hold.as_ref().and_then(|hold| hold.token()));
            (format!("B believes that it holds the lock, beside C: {why}"), Some(hold))
        }
        Belief::Told(why) => {
            waiting.ended(&why);
            (format!("B knows that it does not hold the lock: {why}"), None)
        }
    };
    let deluded = believed.is_some();
    // C is asked between two answers of B, while both still use the lock.
    let ask = |hold: &Option<Box<dyn Hold>>| {
        waiting.believes(|| hold.as_ref().is_none_or(|hold| hold.believes()));
    };
    believed.iter().for_each(ask);
    next.believes(|| got.believes());
    sleep(WORK).await;
    believed.iter().for_each(ask);
    next.believes(|| got.believes());
    if let Some(hold) = believed {
        if let Some(hold) = hold {
            hold.release().await?;
        }
        waiting.ended("it believed so");
    }
    next.gives_back(got).await?;
    let checker = Checker::new().tokens(Grade::None);
    let history = trace.history();
    let pairs = checker.check(&history)?.count(Rule::Exclusion);
    let side = Side::new(label, nature, !deluded, told)
        .evidence("A holds the lock, B's place in line is taken away, A leaves and C gets in");
    Ok((side.traced(history, &checker)?, pairs))
}
