//! A holder that dies without a word, and a client that wants the lock after it.

use std::time::Duration;

use lock_history::History;

use crate::{Actor, Contestant, Failure, Trace, time::Time};

/// What became of it.
pub(crate) struct Crash {
    /// How long the next client waited, if it was granted at all.
    pub granted_after: Option<Duration>,
    /// The trace.
    pub history: History,
}

/// A takes the lock and is killed; B waits for it so long at the most, and releases it.
pub(crate) async fn crash(
    lock: &dyn Contestant,
    trace: &Trace,
    name: &str,
    ttl: Duration,
    limit: Duration,
) -> Result<Crash, Failure> {
    let (home, entry) = (Actor::start("A")?, trace.client("A").asks(name));
    let client = lock.client_in(&home).await?;
    let (a, key) = (client.clone(), name.to_owned());
    let hold = home.run(async move { a.acquire(&key, ttl, limit).await }).await??;
    let hold = hold.ok_or("A does not get a free lock")?;
    entry.granted(hold.token());
    let killed = trace.fault("kill", "A");
    home.kill((client, hold));

    let (b, entry, time) = (lock.client().await?, trace.client("B").asks(name), Time::start());
    let hold = b.acquire(name, ttl, limit).await?;
    let granted_after = hold.is_some().then(|| time.since());
    match hold {
        Some(hold) => {
            entry.granted(hold.token());
            entry.releasing();
            hold.release().await?;
            entry.released();
        }
        None => entry.ended("waited in vain"),
    }
    drop(killed);
    Ok(Crash { granted_after, history: trace.history() })
}

impl Crash {
    /// What happened, if the next client had so long.
    pub(crate) fn words(&self, limit: Duration) -> String {
        match self.granted_after {
            Some(after) => format!("the next client gets in after {:.1} s", after.as_secs_f64()),
            None => format!("the next client waits {:.1} s in vain", limit.as_secs_f64()),
        }
    }
}
