//! Giving back what was lost.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::sync::Notify;

use crate::{Instant, held::Inner, locks::Client};

/// Grants that were lost and are given back a margin later.
///
/// One task with one timer for all of a client, however many it loses at once, and none while there
/// is nothing to give back.
#[derive(Default)]
pub(crate) struct Returns {
    due: Mutex<Due>,
    earlier: Notify,
}

#[derive(Default)]
struct Due {
    next_id: u64,
    lost: BTreeMap<(Instant, u64), Arc<Inner>>,
    /// Whether the task runs.
    running: bool,
}

impl Client {
    /// Gives a grant back at `at`.
    pub(crate) fn give_back_at(self: &Arc<Self>, at: Instant, lost: Arc<Inner>) {
        let mut due = self.returns.due();
        let key = (at, due.next_id);
        due.next_id += 1;
        due.lost.insert(key, lost);
        if std::mem::replace(&mut due.running, true) {
            self.returns.earlier.notify_one();
        } else {
            self.home.runtime.spawn(give_back_all(self.clone()));
        }
    }
}

impl Returns {
    fn due(&self) -> MutexGuard<'_, Due> {
        // Nothing panics while it is held.
        self.due.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Due {
    /// When the next one is due. The task ends with `None`, which it gets if nothing is under way.
    fn next(&mut self, under_way: usize) -> Option<Instant> {
        let next = self.lost.first_key_value().map(|(key, _)| key.0);
        self.running = under_way > 0 || next.is_some();
        self.running.then(|| next.unwrap_or(Instant::NEVER))
    }

    fn take(&mut self, now: Instant) -> BTreeMap<(Instant, u64), Arc<Inner>> {
        let later = self.lost.split_off(&(now, u64::MAX));
        std::mem::replace(&mut self.lost, later)
    }
}

async fn give_back_all(client: Arc<Client>) {
    let mut under_way = FuturesUnordered::new();
    loop {
        let Some(next) = client.returns.due().next(under_way.len()) else { return };
        tokio::select! {
            () = client.clock.sleep_until(next) => {
                let due = client.returns.due().take(client.clock.now());
                under_way.extend(due.into_values().map(Inner::give_back));
            }
            // A failure is traced.
            Some(_) = under_way.next() => {}
            () = client.returns.earlier.notified() => {}
        }
    }
}
