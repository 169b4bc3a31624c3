//! A holder reads the stock, checks its lock, stands still past its TTL, and then writes.

use std::{sync::Arc, time::Duration};

use distlock::{FencingToken, Gate};
use lock_history::History;

use crate::{Actor, Contestant, Failure, Trace};

const PATIENCE: Duration = Duration::from_secs(30);

/// The one item for sale, with or without a check of the buyers.
pub(crate) enum Stock {
    /// Accepts every write.
    Unprotected,
    /// Refuses a write with a token older than one it has seen.
    Gate(Gate<u32>),
}

impl Stock {
    /// Returns whether the sale is accepted.
    fn sell(&self, token: u64) -> bool {
        match self {
            Self::Unprotected => true,
            Self::Gate(gate) => gate.enter(FencingToken::new(token), |sold| *sold += 1).is_ok(),
        }
    }
}

/// The result.
pub(crate) struct LateWriter {
    /// Number of sales of the only item.
    pub sold: u32,
    /// The events, line by line.
    pub story: Vec<String>,
    /// The trace.
    pub history: History,
}

/// A sees one item, checks that it holds the lock, and stands still past the TTL. B gets the lock
/// and sells the item. A comes back and makes its planned write.
pub(crate) async fn late_writer(
    lock: &dyn Contestant,
    stock: Arc<Stock>,
    trace: &Trace,
    name: &str,
    ttl: Duration,
) -> Result<LateWriter, Failure> {
    let (home, first) = (Actor::start("A")?, trace.client("A").asks(name));
    let client = lock.client_in(&home).await?;
    let hold = client.acquire_in(&home, name, ttl, PATIENCE).await?;
    let hold = hold.ok_or("A does not get a free lock")?;
    first.granted(hold.token());
    let token = hold.token().unwrap_or_default();
    let sure = first.believes(|| hold.believes());
    let mut story = vec![format!("A sees one item, and its lock is valid: {sure}")];

    let breakage = trace.fault("pause", "A");
    let pause = home.pause().await?;
    let (other, second) = (lock.client().await?, trace.client("B").asks(name));
    let next = other.acquire(name, ttl, PATIENCE).await?.ok_or("B waits in vain")?;
    second.granted(next.token());
    let mut sold = 0;
    let mut sell = |who: &str, token: u64, entry: &crate::Entry| {
        let taken = stock.sell(token);
        sold += u32::from(taken);
        match taken {
            true => entry.wrote(token),
            false => entry.rejected(token),
        }
        let what = if taken { "is taken" } else { "is rejected" };
        story.push(format!("{who} sells the item with token {token}: the write {what}"));
    };
    sell("B", next.token().unwrap_or_default(), &second);
    second.leaves(next).await?;
    pause.end();
    breakage.healed();
    // A continues after its check of the lock.
    let standing = home.run(async {}).await;
    standing?;
    sell("A", token, &first);
    let _ = home.run(async move { hold.release().await }).await?;
    first.ended("wrote late");
    drop(client);
    Ok(LateWriter { sold, story, history: trace.history() })
}
