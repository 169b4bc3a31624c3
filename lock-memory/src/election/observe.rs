//! Delivers changes of the leader to observers.

use lock_core::{
    Clock, Leader, LockName, Observed,
    keep::{limits::UNREAD, poison::lock},
};
use tokio::sync::mpsc;

use crate::{MemoryStore, session::Session, wire::network::UnderWay};

impl Session {
    /// Delivers changes of the leader until the observer has gone or the client is closed.
    pub(crate) fn observe(
        &self,
        name: LockName,
        changes: mpsc::UnboundedReceiver<Option<Leader>>,
    ) -> mpsc::Receiver<Observed> {
        let (out, observed) = mpsc::channel(UNREAD);
        let changes = UnderWay::new(self.client.network.clone(), changes, true);
        let store = self.client.store.clone();
        let mut observers = lock(&self.observers);
        while observers.try_join_next().is_some() {}
        observers.spawn(deliver(store, name, changes, out));
        observed
    }
}

/// Delivers changes over the client's network until the observer has gone. The end of the session
/// aborts it.
async fn deliver(
    store: MemoryStore,
    name: LockName,
    mut changes: UnderWay<Option<Leader>>,
    out: mpsc::Sender<Observed>,
) {
    loop {
        let step = tokio::select! {
            () = out.closed() => return,
            // Perhaps no other request comes after the leader has expired: this look finds it.
            () = Clock::Tokio.sleep_until(store.next_expiry(&name)) => continue,
            Some(step) = changes.step() => step,
        };
        let Some(now) = step else { continue };
        if out.send(Ok(now)).await.is_err() {
            return;
        }
    }
}
