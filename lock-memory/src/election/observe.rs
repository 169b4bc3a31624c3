//! Who leads, told to those who observe.

use std::sync::{Arc, Weak};

use lock_core::{Clock, Leader, LockName, Observed};
use tokio::{sync::mpsc, task::AbortHandle};

use crate::{
    network::{Network, UnderWay},
    session::Session,
    store::MemoryStore,
};

/// How many changes may wait for an observer that does not look.
const UNREAD: usize = 64;

/// Somebody who observes a name, as the store knows it.
#[derive(Debug)]
pub(crate) struct Watching {
    tell: mpsc::UnboundedSender<Option<Leader>>,
    told: Option<Option<Leader>>,
}

impl Watching {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<Option<Leader>>) {
        let (tell, changes) = mpsc::unbounded_channel();
        (Self { tell, told: None }, changes)
    }

    /// Tells who leads now, if that is new. Answers whether anybody listens.
    pub(crate) fn tell(&mut self, now: &Option<Leader>) -> bool {
        if self.told.as_ref() != Some(now) {
            self.told = Some(now.clone());
            // Nobody listens any more: found out below.
            let _ = self.tell.send(now.clone());
        }
        !self.tell.is_closed()
    }
}

/// Delivers changes over the client's network until the observer has gone.
pub(crate) fn deliver(
    session: &Arc<Session>,
    name: LockName,
    changes: mpsc::UnboundedReceiver<Option<Leader>>,
) -> (mpsc::Receiver<Observed>, AbortHandle) {
    let (out, observed) = mpsc::channel(UNREAD);
    let (weak, network) = (Arc::downgrade(session), session.network.clone());
    let task = tokio::spawn(run(weak, network, session.store.clone(), name, changes, out));
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
            // Nobody else may come to see that the leader has expired.
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
