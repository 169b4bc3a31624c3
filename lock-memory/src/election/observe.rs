//! Delivers changes of the leader to observers.

use std::sync::{Arc, Weak};

use lock_core::{Clock, Leader, LockName, Observed, keep::limits::UNREAD};
use tokio::{sync::mpsc, task::AbortHandle};

use crate::{
    session::Session,
    store::MemoryStore,
    wire::network::{Network, UnderWay},
};

impl Session {
    /// Delivers changes of the leader until the observer has gone or the client is closed.
    pub(crate) fn observe(
        self: &Arc<Self>,
        name: LockName,
        changes: mpsc::UnboundedReceiver<Option<Leader>>,
    ) -> mpsc::Receiver<Observed> {
        let (observed, task) = deliver(self, name, changes);
        let mut observers = self.observers();
        observers.retain(|task| !task.is_finished());
        observers.push(task);
        observed
    }
}

/// Delivers changes over the client's network until the observer has gone.
fn deliver(
    session: &Arc<Session>,
    name: LockName,
    changes: mpsc::UnboundedReceiver<Option<Leader>>,
) -> (mpsc::Receiver<Observed>, AbortHandle) {
    let (out, observed) = mpsc::channel(UNREAD);
    let (weak, network) = (Arc::downgrade(session), session.client.network.clone());
    let task = tokio::spawn(run(weak, network, session.client.store.clone(), name, changes, out));
    (observed, task.abort_handle())
}

async fn run(
    session: Weak<Session>,
    network: Network,
    store: MemoryStore,
    name: LockName,
    mut changes: mpsc::UnboundedReceiver<Option<Leader>>,
    out: mpsc::Sender<Observed>,
) {
    let mut under_way = UnderWay::new(network);
    while session.strong_count() > 0 {
        let now = tokio::select! {
            () = out.closed() => return,
            // Perhaps no other request comes after the leader has expired: this look finds it.
            () = Clock::Tokio.sleep_until(store.next_expiry(&name)) => continue,
            Some(now) = changes.recv() => {
                under_way.send_state(now);
                continue;
            }
            now = under_way.arrival() => now,
        };
        if out.send(Ok(now)).await.is_err() {
            return;
        }
    }
}
