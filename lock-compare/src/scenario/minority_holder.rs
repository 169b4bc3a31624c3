//! A holder on the minority side, and the next holder on the other side.

use std::time::Duration;

use distlock::LockGuard;
use lock_history::Loss;
use lock_lab::Side;
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use crate::{Contestant, Entry, Failure, Scribe, Trace};

/// Longest wait for the report of a loss on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// A holds a lock of distlock on a side, and records the report of its loss.
pub(crate) struct MinorityHolder {
    told: watch::Receiver<bool>,
    _waiting: JoinHandle<()>,
    b: Scribe,
    name: String,
    ttl: Duration,
}

impl MinorityHolder {
    /// A takes the free lock.
    pub(crate) async fn take(
        side: &Side,
        url: String,
        trace: &Trace,
        name: &str,
        ttl: Duration,
    ) -> Result<Self, Failure> {
        let (entry, key) = (trace.client("A").asks(name), name.to_owned());
        let acquire = async move {
            let locks = distlock::connect(url).await?;
            locks.lock(key)?.ttl(ttl).acquire().await
        };
        let guard = side.run(acquire).await?;
        entry.granted(Some(guard.token().value()));
        entry.believes(|| guard.is_valid());
        let (tell, told) = watch::channel(false);
        let waiting = side.spawn(wait(guard, entry, tell));
        let (b, name) = (trace.client("B"), name.to_owned());
        Ok(Self { told, _waiting: waiting, b, name, ttl })
    }

    /// B waits for the lock on the other side. Returns whether B gets it, and whether A gets the
    /// report.
    pub(crate) async fn until_next(
        mut self,
        lock: &dyn Contestant,
        patience: Duration,
    ) -> Result<(bool, bool), Failure> {
        let entry = self.b.asks(&self.name);
        let hold = lock.client().await?.acquire(&self.name, self.ttl, patience).await?;
        entry.tried(hold.as_deref());
        let waiting = async { self.told.wait_for(|told| *told).await.is_ok() };
        let told = timeout(PATIENCE, waiting).await.unwrap_or(false);
        let granted = hold.is_some();
        if let Some(hold) = hold {
            entry.leaves(hold).await?;
        }
        Ok((granted, told))
    }
}

async fn wait(guard: LockGuard, entry: Entry, tell: watch::Sender<bool>) {
    let reason = guard.lost().await;
    entry.lost(Loss::Deadline, &reason.to_string());
    let _ = tell.send(true);
}
