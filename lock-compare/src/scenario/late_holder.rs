//! The oversell case: a holder stands still for longer than its TTL, comes back and unlocks.

use std::time::Duration;

use lock_history::{History, Loss};

use crate::{Actor, Contestant, Entry, Failure, Hold, Trace};

/// Longest wait of a client for its turn.
const PATIENCE: Duration = Duration::from_secs(30);

/// The result.
pub(crate) struct LateHolder {
    /// Whether a third client got the lock while the second one held it.
    pub third_got_in: bool,
    /// Number of sales of the only item.
    pub sold: u32,
    /// The events, line by line.
    pub story: Vec<String>,
    /// The trace.
    pub history: History,
}

/// Plays it. A takes the lock and stands still past the TTL. B gets the lock and begins to sell the
/// only item. A comes back, has nothing to sell, and unlocks. C tries to enter, and sells the stock
/// that it sees. Each client reads the stock when it enters, and writes it when it leaves.
pub(crate) async fn late_holder(
    lock: &dyn Contestant,
    trace: &Trace,
    name: &str,
    ttl: Duration,
) -> Result<LateHolder, Failure> {
    let (a, home) = (trace.client("A"), Actor::start("A")?);
    let entry = a.asks(name);
    let client = lock.client_in(&home).await?;
    let hold = client.acquire_in(&home, name, ttl, PATIENCE).await?;
    let hold = hold.ok_or("A does not get a free lock")?;
    entry.granted(hold.token());
    entry.believes(|| hold.believes());

    let breakage = trace.fault("pause", "A");
    let pause = home.pause().await?;
    let (buyer, b) = (lock.client().await?, trace.client("B"));
    let selling = b.asks(name);
    let second = buyer.acquire(name, ttl * 10, PATIENCE).await?;
    let second = second.ok_or("B waits in vain for a lock whose holder stands still")?;
    selling.granted(second.token());
    pause.end();
    breakage.healed();

    let mut story = vec!["B has the lock; A comes back and unlocks".to_owned()];
    let believed = come_back(&home, hold, &entry).await?;
    story.push(match believed {
        true => "A is told that it has released the lock".to_owned(),
        false => "A is told that the lock is not its own any more".to_owned(),
    });
    let (other, c) = (lock.client().await?, trace.client("C"));
    let intruding = c.asks(name);
    let third = other.acquire(name, ttl * 10, Duration::ZERO).await?;
    let third_got_in = third.is_some();
    intruding.tried(third.as_deref());
    selling.believes(|| second.believes());
    story.push(match third_got_in {
        true => "C gets the lock while B holds it: both see one item and sell it".to_owned(),
        false => "C does not get the lock while B holds it: one item is sold once".to_owned(),
    });
    for (hold, entry) in [(Some(second), selling), (third, intruding)] {
        if let Some(hold) = hold {
            entry.leaves(hold).await?;
        }
    }
    let sold = 1 + u32::from(third_got_in);
    Ok(LateHolder { third_got_in, sold, story, history: trace.history() })
}

/// A checks its own calculation, if it has one, and unlocks.
async fn come_back(home: &Actor, hold: Box<dyn Hold>, entry: &Entry) -> Result<bool, Failure> {
    if !entry.believes(|| hold.believes()) {
        entry.lost(Loss::Deadline, "its own deadline has passed");
    } else {
        entry.releasing();
    }
    let believed = home.run(async move { hold.release().await }).await??;
    entry.ended(if believed { "released" } else { "not its own" });
    Ok(believed)
}
