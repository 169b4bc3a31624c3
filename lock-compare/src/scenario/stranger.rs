//! A client without a lock tries to unlock another client's lock.

use std::time::Duration;

use async_trait::async_trait;
use lock_history::History;

use crate::{Contestant, Failure, Trace};

/// A third client is granted at once, or not at all.
const TTL: Duration = Duration::from_secs(8);

/// The actions of a client on a lock that it does not hold.
#[async_trait]
pub(crate) trait Stranger: Send + Sync {
    /// Tries all of them. Returns the replies, line by line.
    async fn unlock(&self, name: &str) -> Result<Vec<String>, Failure>;
}

/// The result.
pub(crate) struct Intrusion {
    /// Whether a third client entered while the first one held the lock.
    pub third_got_in: bool,
    /// The events, line by line.
    pub story: Vec<String>,
    /// The trace.
    pub history: History,
}

/// Plays it. A holds the lock, B unlocks it, C tries to enter, A unlocks.
pub(crate) async fn stranger(
    lock: &dyn Contestant,
    b: &dyn Stranger,
    trace: &Trace,
    name: &str,
) -> Result<Intrusion, Failure> {
    let (first, third) = (lock.client().await?, lock.client().await?);
    let entry = trace.client("A").asks(name);
    let hold = first.acquire(name, TTL, Duration::ZERO).await?;
    let hold = hold.ok_or("A does not get a free lock")?;
    entry.granted(hold.token());
    let mut story = b.unlock(name).await?;
    let intruding = trace.client("C").asks(name);
    let intruder = third.acquire(name, TTL, Duration::ZERO).await?;
    intruding.tried(intruder.as_deref());
    entry.believes(|| hold.believes());
    let third_got_in = intruder.is_some();
    story.push(told(third_got_in).to_owned());
    if let Some(intruder) = intruder {
        intruding.leaves(intruder).await?;
    }
    entry.leaves(hold).await?;
    Ok(Intrusion { third_got_in, story, history: trace.history() })
}

fn told(third_got_in: bool) -> &'static str {
    match third_got_in {
        true => "C gets the lock while A holds it",
        false => "C does not get the lock: A still has it",
    }
}
