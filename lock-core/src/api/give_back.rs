//! Giving back later: what was lost, and what is kept for a least time.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::sync::{Notify, oneshot};

use crate::{
    Instant, Result,
    api::{held::Inner, locks::Client},
};

/// Grants that are given back later.
///
/// One task with one timer for all of a client, however many there are, and none while there is nothing to
/// give back.
#[derive(Default)]
pub(crate) struct Returns {
    due: Mutex<Due>,
    earlier: Notify,
}

#[derive(Default)]
struct Due {
    next_id: u64,
    grants: BTreeMap<(Instant, u64), Returned>,
    /// Whether the task runs.
    running: bool,
}

enum Returned {
    /// Its holder had a margin to stop.
    Lost(Arc<Inner>),
    /// Its holder is done, and hears of the end if it waits for that.
    Kept(Arc<Inner>, oneshot::Sender<Result<()>>),
}

impl Inner {
    /// Gives a grant that was lost back at `at`.
    pub(crate) fn give_back_at(self: Arc<Self>, at: Instant) {
        self.client.clone().return_at(at, Returned::Lost(self));
    }

    /// Keeps a grant that nobody uses any more, and releases it at `at`, whether the future is polled or
    /// not.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`](crate::Error::Lost) if it is lost before,
    /// [`Error::Closed`](crate::Error::Closed) if the client's runtime ends before.
    pub(crate) fn release_at(self: Arc<Self>, at: Instant) -> impl Future<Output = Result<()>> {
        let (done, released) = oneshot::channel();
        self.client.clone().return_at(at, Returned::Kept(self.clone(), done));
        async move {
            tokio::select! {
                biased;
                released = released => released.unwrap_or_else(|_| Err(self.client.home.closed())),
                reason = self.lease.validity().lost() => Err(self.loss_error(reason)),
            }
        }
    }
}

impl Client {
    fn return_at(self: &Arc<Self>, at: Instant, grant: Returned) {
        let mut due = self.returns.due();
        let key = (at, due.next_id);
        due.next_id += 1;
        due.grants.insert(key, grant);
        if std::mem::replace(&mut due.running, true) {
            self.returns.earlier.notify_one();
        } else {
            drop(due);
            self.home.runtime.spawn(give_back_all(Task(Some(self.clone()))));
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
        let next = self.grants.first_key_value().map(|(key, _)| key.0);
        self.running = under_way > 0 || next.is_some();
        self.running.then(|| next.unwrap_or(Instant::NEVER))
    }

    fn take(&mut self, now: Instant) -> BTreeMap<(Instant, u64), Returned> {
        let later = self.grants.split_off(&(now, u64::MAX));
        std::mem::replace(&mut self.grants, later)
    }
}

impl Returned {
    /// A failure is traced.
    async fn give_back(self) {
        match self {
            Self::Lost(grant) => drop(grant.give_back().await),
            Self::Kept(grant, done) => {
                let released = match grant.check() {
                    Ok(()) if grant.end() => grant.give_back().await,
                    Ok(()) => grant.check(),
                    lost => lost,
                };
                // Its holder may not wait for it.
                let _ = done.send(released);
            }
        }
    }
}

/// The client of the task while it runs.
struct Task(Option<Arc<Client>>);

impl Drop for Task {
    /// The runtime has ended before the task: what is left ends with its TTL. It must not keep the client
    /// alive, which it belongs to.
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            let left = std::mem::take(&mut *client.returns.due());
            drop(left);
        }
    }
}

async fn give_back_all(mut task: Task) {
    let Some(client) = task.0.clone() else { return };
    let mut under_way = FuturesUnordered::new();
    loop {
        let Some(next) = client.returns.due().next(under_way.len()) else {
            // The next task may have begun.
            task.0 = None;
            return;
        };
        tokio::select! {
            () = client.clock.sleep_until(next) => {
                let due = client.returns.due().take(client.clock.now());
                under_way.extend(due.into_values().map(Returned::give_back));
            }
            Some(()) = under_way.next() => {}
            () = client.returns.earlier.notified() => {}
        }
    }
}
