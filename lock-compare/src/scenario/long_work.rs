//! The work takes longer than the TTL, while another client waits.

use std::time::Duration;

use lock_history::{History, Loss};

use crate::{Contestant, Failure, Trace};

/// The result.
pub(crate) struct LongWork {
    /// Time from the first grant to a second client's grant, while the first one worked.
    pub second_after: Option<Duration>,
    /// Whether the first client then believed that it held the lock.
    pub deluded: bool,
    /// The events, line by line.
    pub story: Vec<String>,
    /// The trace.
    pub history: History,
}

/// Plays it. A takes the lock and works for two TTLs. B waits for the same time.
pub(crate) async fn long_work(
    lock: &dyn Contestant,
    trace: &Trace,
    name: &str,
    ttl: Duration,
) -> Result<LongWork, Failure> {
    let (first, second) = (lock.client().await?, lock.client().await?);
    let entry = trace.client("A").asks(name);
    let hold = first.acquire(name, ttl, Duration::ZERO).await?;
    let hold = hold.ok_or("A does not get a free lock")?;
    entry.granted(hold.token());
    let from = trace.now();
    entry.believes(|| hold.believes());
    let waiting = trace.client("B").asks(name);
    // The work ends with this wait.
    let next = second.acquire(name, ttl, ttl * 2).await?;
    let second_after = next.is_some().then(|| Duration::from_nanos(trace.now() - from));
    match &next {
        Some(next) => waiting.granted(next.token()),
        None => waiting.ended("waited in vain"),
    }
    let believes = entry.believes(|| hold.believes());
    let deluded = believes && next.is_some();
    if !believes {
        entry.lost(Loss::Deadline, "its own deadline has passed");
    }
    let mut story = vec![match second_after {
        Some(after) => format!("B gets in {} ms after A, who still works", after.as_millis()),
        None => format!("B does not get in while A works for {} s", (ttl * 2).as_secs()),
    }];
    if next.is_some() {
        story.push(match deluded {
            true => "A is told nothing: two clients work at the same time".to_owned(),
            false => "A is told that its term is over, and can stop".to_owned(),
        });
    }
    if let Some(next) = &next {
        waiting.believes(|| next.believes());
    }
    let own = hold.release().await?;
    entry.ended(if own { "released" } else { "not its own" });
    if let Some(next) = next {
        waiting.gives_back(next).await?;
    }
    Ok(LongWork { second_after, deluded, story, history: trace.history() })
}
