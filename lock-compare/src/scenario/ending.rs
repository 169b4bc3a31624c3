//! A holder ends without a release while another client waits.

use std::{sync::Arc, time::Duration};

use lock_history::History;

use crate::{Actor, Contestant, Failure, Hold, Player, Scribe, Trace};

/// The holder's end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ending {
    /// Abruptly, as by SIGKILL.
    Killed,
    /// It only closes its session.
    Closed,
}

impl Ending {
    /// The fault, and the end of the attempt.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Killed => ("kill", "killed"),
            Self::Closed => ("close", "session closed"),
        }
    }
}

/// The result.
pub(crate) struct Ended {
    /// Time from the end to the next client's grant; `None` if it gave up.
    pub freed: Option<Duration>,
    /// The events in one sentence.
    pub happened: String,
    /// The trace.
    pub history: History,
}

/// Plays it. A takes the lock, B waits for it as long as its patience lasts, A ends.
pub(crate) async fn ending(
    lock: &dyn Contestant,
    trace: &Trace,
    name: &str,
    ttl: Duration,
    how: Ending,
    patience: Duration,
) -> Result<Ended, Failure> {
    let (a, home) = (trace.client("A"), Actor::start("A")?);
    let (first, second) = (lock.client_in(&home).await?, lock.client().await?);
    let entry = a.asks(name);
    let hold = first.acquire_in(&home, name, ttl, patience).await?;
    let hold = hold.ok_or("A does not get a free lock")?;
    entry.granted(hold.token());
    entry.believes(|| hold.believes());
    let b = trace.client("B");
    let end = async {
        let (fault, why) = how.words();
        let (breakage, from) = (trace.fault(fault, "A"), trace.now());
        end(home, first, hold, how).await?;
        breakage.healed();
        entry.ended(why);
        Ok::<_, Failure>(from)
    };
    let (got, ended) = tokio::join!(wait(&second, &b, trace, name, ttl, patience), end);
    let (got, from) = (got?, ended?);
    let freed = got.map(|at| Duration::from_nanos(at.saturating_sub(from)));
    Ok(Ended { freed, happened: happened(freed, patience), history: trace.history() })
}

fn happened(freed: Option<Duration>, patience: Duration) -> String {
    match freed {
        Some(after) => format!("the next client gets in {} ms after it", after.as_millis()),
        None => format!("the next client waits in vain for {} s", patience.as_secs_f64()),
    }
}

async fn end(
    home: Actor,
    client: Arc<dyn Player>,
    hold: Box<dyn Hold>,
    how: Ending,
) -> Result<(), Failure> {
    match how {
        Ending::Killed => home.kill((client, hold)),
        Ending::Closed => {
            home.run(async move {
                let closed = client.close().await;
                drop(hold);
                closed
            })
            .await??
        }
    }
    Ok(())
}

/// B waits, enters perhaps, and leaves. Returns the time of its grant.
async fn wait(
    client: &Arc<dyn Player>,
    b: &Scribe,
    trace: &Trace,
    name: &str,
    ttl: Duration,
    patience: Duration,
) -> Result<Option<u64>, Failure> {
    let entry = b.asks(name);
    let Some(hold) = client.acquire(name, ttl, patience).await? else {
        entry.ended("waited in vain");
        return Ok(None);
    };
    let at = trace.now();
    entry.granted(hold.token());
    entry.leaves(hold).await?;
    Ok(Some(at))
}
