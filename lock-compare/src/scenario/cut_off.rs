//! A holder is cut off from its store, while another client waits.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_history::{History, Loss};
use tokio::time::sleep;

use crate::{Entry, Failure, Hold, Player, Trace};

/// Time between the holder's checks of its own calculation.
const LOOK: Duration = Duration::from_millis(20);

/// A fault that cuts a client off.
#[async_trait]
pub(crate) trait Cut: Send + Sync {
    /// Its description: "the network is cut by a proxy".
    fn what(&self) -> &'static str;

    /// Stops all messages.
    async fn cut(&self) -> Result<(), Failure>;

    /// Ends the fault.
    async fn heal(&self);
}

/// The result.
pub(crate) struct CutOff {
    /// Time from the cut to the next client's grant; `None` if it gave up.
    pub freed: Option<Duration>,
    /// Whether the holder believed that it held the lock after the next grant.
    pub deluded: bool,
    /// The events, line by line.
    pub story: Vec<String>,
    /// The trace.
    pub history: History,
}

/// Plays it. A takes the lock, is cut off, and checks its own calculation. B waits as long as its
/// patience lasts. Then the cut heals, and A unlocks.
pub(crate) async fn cut_off(
    (a, cut): (&Arc<dyn Player>, &dyn Cut),
    b: &Arc<dyn Player>,
    trace: &Trace,
    (name, ttl): (&str, Duration),
    patience: Duration,
) -> Result<CutOff, Failure> {
    let entry = trace.client("A").asks(name);
    let hold = a.acquire(name, ttl, patience).await?.ok_or("A does not get a free lock")?;
    entry.granted(hold.token());
    entry.believes(|| hold.believes());
    let breakage = trace.fault("cut", "A");
    cut.cut().await?;
    let from = trace.now();
    let waiting = trace.client("B").asks(name);
    let next = tokio::select! {
        next = b.acquire(name, ttl, patience) => next?,
        () = watch(&*hold, &entry) => unreachable!("it looks for ever"),
    };
    let freed = next.is_some().then(|| Duration::from_nanos(trace.now().saturating_sub(from)));
    match &next {
        Some(next) => waiting.granted(next.token()),
        None => waiting.ended("waited in vain"),
    }
    let deluded = entry.believes(|| hold.believes()) && next.is_some();
    let mut story = vec![cut.what().to_owned(), said(freed, patience), told(deluded, freed)];
    if let Some(next) = &next {
        waiting.believes(|| next.believes());
    }
    cut.heal().await;
    breakage.healed();
    let own = hold.release().await?;
    entry.ended(if own { "released" } else { "not its own" });
    story.push(format!(
        "the cut heals, A unlocks: the store {} it",
        if own { "accepts" } else { "refuses" }
    ));
    if let Some(next) = next {
        waiting.leaves(next).await?;
    }
    Ok(CutOff { freed, deluded, story, history: trace.history() })
}

/// Checks without end. Records the loss when it comes.
async fn watch(hold: &dyn Hold, entry: &Entry) {
    let mut is_lost = false;
    loop {
        if !is_lost && !entry.believes(|| hold.believes()) {
            entry.lost(Loss::Deadline, "its own deadline has passed");
            is_lost = true;
        }
        sleep(LOOK).await;
    }
}

fn said(freed: Option<Duration>, patience: Duration) -> String {
    match freed {
        Some(after) => format!("B gets in {} ms after the cut", after.as_millis()),
        None => format!("B waits in vain for {} s", patience.as_secs_f64()),
    }
}

fn told(deluded: bool, freed: Option<Duration>) -> String {
    match (deluded, freed) {
        (true, _) => "A still believes that it holds the lock".to_owned(),
        (false, Some(_)) => "A does not believe any more that it holds the lock".to_owned(),
        (false, None) => "A is not disturbed".to_owned(),
    }
}
