//! Until when a grant is held, and how it ends: lost, given back, or given back later.

use std::{future::Future, sync::Arc};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::sync::oneshot;

use crate::{
    Error, Instant, LossReason, Result, Term, Ticket, Validity,
    api::client::{Client, Hold, Returned},
    deadline,
    driver::trace,
    machine::alarm::{HasSlot, Slot, Watched},
};

impl Hold {
    fn validity(&self) -> &Validity {
        self.lease.validity()
    }

    pub(crate) fn until(&self) -> Instant {
        self.validity().until().min(self.cap)
    }

    /// Ends the grant if its deadline has passed, also when the alarm has not rung yet.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the grant is over.
    pub(crate) fn check(self: &Arc<Self>) -> Result<()> {
        if self.client.home.now() >= self.until() {
            self.expire();
        }
        match self.validity().loss() {
            Some(reason) => Err(self.loss_error(reason)),
            None => Ok(()),
        }
    }

    /// Whether anything can still be done with the grant.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] if the client's runtime has ended, [`Error::Lost`] if the grant is over.
    pub(crate) fn check_all(self: &Arc<Self>) -> Result<()> {
        self.client.home.check()?;
        self.check()
    }

    pub(crate) fn loss_error(&self, reason: LossReason) -> Error {
        Error::Lost { name: self.name.clone(), reason }
    }

    /// What stands for the grant now that it is left to be adopted.
    pub(crate) fn ticket(&self, place: String) -> Ticket {
        let store = self.client.driver.guarantees().store;
        let now = self.client.home.now();
        let hold_left = (self.cap != Instant::NEVER).then(|| self.cap.since(now));
        let (token, term) = (self.lease.token(), (self.ttl, self.term));
        Ticket::new(store, self.name.clone(), token, term, hold_left, place)
    }

    fn expire(self: &Arc<Self>) {
        let reason = match self.term {
            _ if self.cap <= self.validity().until() => LossReason::MaxHold,
            Term::Fixed => LossReason::TermOver,
            Term::Renewed => LossReason::Expired,
        };
        if !self.validity().lose(reason) {
            return;
        }
        self.client.alarm.remove(&**self);
        let margin = deadline::margin(self.ttl);
        let pause = match reason {
            LossReason::Expired if self.lease.ends_by_itself() => return,
            // A session that was not renewed either has ended by then, and all of its entries with
            // it.
            LossReason::Expired => margin * 2,
            // The holder has time to stop: given back at once, the lock would be the next holder's
            // before this one has heard of its loss.
            _ => margin,
        };
        self.clone().give_back_at(self.client.home.now() + pause);
    }

    /// Until when the grant is kept although its holder gives it back; `None` if it may go at once.
    pub(crate) fn kept_until(&self) -> Option<Instant> {
        self.floor.get().copied().filter(|floor| *floor > self.client.home.now())
    }

    /// Ends the grant as released; whether nothing has ended it before.
    pub(crate) fn end(&self) -> bool {
        let first = self.validity().release();
        if first {
            self.client.alarm.remove(self);
        }
        first
    }

    /// Removes the grant's entry from the store.
    pub(crate) async fn give_back(self: Arc<Self>) -> Result<()> {
        let result = self.lease.release().await;
        self.trace_release(&result);
        result
    }

    /// Tells what became of a release.
    pub(crate) fn trace_release(&self, result: &Result<()>) {
        match result {
            Ok(()) => trace::released(&self.name, self.lease.token()),
            Err(error) => trace::release_failed(&self.name, self.lease.token(), error),
        }
    }
}

impl Watched for Hold {
    fn ring(self: Arc<Self>, _now: Instant) -> Option<Instant> {
        if self.validity().has_ended() || self.check().is_err() {
            return None;
        }
        Some(self.until())
    }
}

impl HasSlot for Hold {
    fn slot(&self) -> &Slot {
        &self.slot
    }
}

impl Hold {
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
        if due.add(at, grant) {
            self.returns.earlier.notify_one();
        } else {
            drop(due);
            self.home.runtime.spawn(give_back_all(Task(Some(self.clone()))));
        }
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
                under_way.extend(due.map(Returned::give_back));
            }
            Some(()) = under_way.next() => {}
            () = client.returns.earlier.notified() => {}
        }
    }
}
