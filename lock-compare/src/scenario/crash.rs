//! A holder dies abruptly, and another client wants the lock.

use std::time::Duration;

use lock_history::History;

use crate::{Actor, Contestant, Failure, Trace, time::Time};

/// The result.
pub(crate) struct Crash {
    /// The next client's wait, if it was granted.
    pub granted_after: Option<Duration>,
    /// The trace.
    pub history: History,
}

/// A takes the lock and is killed. B waits for it up to the limit, and releases it.
pub(crate) async fn crash(
    lock: &dyn Contestant,
    trace: &Trace,
    name: &str,
    ttl: Duration,
    limit: Duration,
) -> Result<Crash, Failure> {
    let (home, entry) = (Actor::start("A")?, trace.client("A").asks(name));
    let client = lock.client_in(&home).await?;
    let hold = client.acquire_in(&home, name, ttl, limit).await?;
    let hold = hold.ok_or("A does not get a free lock")?;
    entry.granted(hold.token());
    let killed = trace.fault("kill", "A");
    home.kill((client, hold));

    let (b, entry, time) = (lock.client().await?, trace.client("B").asks(name), Time::start());
    let hold = b.acquire(name, ttl, limit).await?;
    let granted_after = hold.is_some().then(|| time.since());
    entry.passes(hold).await?;
    drop(killed);
    Ok(Crash { granted_after, history: trace.history() })
}

impl Crash {
    /// Describes the events, for this limit of the next client.
    pub(crate) fn words(&self, limit: Duration) -> String {
        match self.granted_after {
            Some(after) => format!("the next client gets in after {:.1} s", after.as_secs_f64()),
            None => format!("the next client waits {:.1} s in vain", limit.as_secs_f64()),
        }
    }
}
