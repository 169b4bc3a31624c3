//! Deadlines of a grant, and its end: lost, given back, given back later, or closed.

use std::{future::Future, sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use tokio::sync::oneshot;

use crate::{
    Error, Instant, LossReason, Result, Term, Ticket, Validity,
    api::client::{Client, Hold, Returned},
    deadline,
    driver::{duration::shown, trace, validity::Watcher},
    machine::{
        alarm::{HasSlot, Slot, Watched},
        drain::Stay,
    },
};

/// The longest time of a close.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

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
        self.client.home.check_process()?;
        self.check()
    }

    pub(crate) fn loss_error(&self, reason: LossReason) -> Error {
        Error::Lost { name: self.name.clone(), reason }
    }

    /// A driver's error as the caller sees it, with the lock's name.
    pub(crate) fn told(&self, op: &'static str, error: Error) -> Error {
        self.client.told(op, error).about(&self.name)
    }

    /// The ticket of a grant that is detached.
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
            // If its session was not renewed either, it has ended by then, with all of its entries.
            LossReason::Expired => margin * 2,
            // The holder has time to stop. Given back at once, the lock could be granted again
            // before this holder notices its loss.
            _ => margin,
        };
        self.clone().give_back_at(self.client.home.now() + pause);
    }

    /// Until when the grant is kept although its holder gave it back; `None` if it may go at once.
    pub(crate) fn kept_until(&self) -> Option<Instant> {
        self.floor.get().copied().filter(|floor| *floor > self.client.home.now())
    }

    /// Ends the grant as released; returns false if it had ended before.
    pub(crate) fn end(&self) -> bool {
        let first = self.validity().release();
        if first {
            self.client.alarm.remove(self);
        }
        first
    }

    /// Removes the grant's entry from the store. A drain waits for it if it has a `stay`.
    pub(crate) async fn give_back(self: Arc<Self>, stay: Option<Stay>) -> Result<()> {
        let mut result = self.lease.release().await;
        if matches!(result, Err(Error::Closed { .. })) && self.client.closed.is_cancelled() {
            // The close came first, and gives back everything.
            result = self.client.close().await;
        }
        self.trace_release(&result);
        drop(stay);
        result
    }

    /// Traces the result of a release.
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

impl Watcher for Hold {
    fn shortened(self: Arc<Self>) {
        // If it has ended since, the alarm finds that out.
        self.client.alarm.add(&self, self.until());
    }
}

impl HasSlot for Hold {
    fn slot(&self) -> &Slot {
        &self.slot
    }
}

impl Hold {
    /// Gives a lost grant back at `at`.
    pub(crate) fn give_back_at(self: Arc<Self>, at: Instant) {
        self.client.clone().return_at(at, Returned::Lost(self));
    }

    /// Keeps a grant that its holder has finished with, and releases it at `at`, also if the future
    /// is not polled.
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
    /// Gives everything back, or waits until the first caller has done so.
    ///
    /// # Errors
    ///
    /// The first close's error: a second close cannot confirm more.
    pub(super) async fn close(&self) -> Result<()> {
        let mut own = None;
        let closed = self.close.get_or_init(async || {
            let closed = self.give_all_back().await;
            let outcome = closed.as_ref().copied().map_err(ToString::to_string);
            self.close_ended.cancel();
            own = Some(closed.map_err(|error| self.told("close", error)));
            outcome
        });
        let unconfirmed = closed.await.as_ref().err();
        match (own, unconfirmed) {
            (Some(own), _) => own,
            (None, None) => Ok(()),
            (None, Some(why)) => {
                let error =
                    self.unavailable("close", format!("the first close was not confirmed: {why}"));
                Err(self.told("close", error))
            }
        }
    }

    async fn give_all_back(&self) -> Result<()> {
        let mut held = self.alarm.drain();
        // Before the request: no client must be granted a lock that still counts as held here.
        held.retain(|grant| grant.lease.validity().lose(LossReason::Closed));
        // These would be given back later: the close does it now.
        held.extend(self.returns.drain().filter_map(Returned::closed));
        let closed = tokio::time::timeout(CLOSE_LIMIT, self.driver.close()).await;
        let closed = closed.unwrap_or_else(|_| {
            Err(self.unavailable("close", format!("not confirmed within {}", shown(CLOSE_LIMIT))))
        });
        held.iter().for_each(|grant| grant.trace_release(&closed));
        closed
    }

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
            Self::Lost(grant) => drop(grant.give_back(None).await),
            Self::Kept(grant, done) => {
                let released = match grant.check() {
                    Ok(()) if grant.end() => grant.give_back(None).await,
                    Ok(()) => grant.check(),
                    lost => lost,
                };
                // Its holder may have stopped waiting.
                let _ = done.send(released);
            }
        }
    }

    /// Ends the delay, as the client is being closed, and notifies a waiting holder. Returns a lost
    /// grant, which is still to be given back.
    fn closed(self) -> Option<Arc<Hold>> {
        match self {
            Self::Lost(grant) => Some(grant),
            Self::Kept(grant, done) => {
                let _ = done.send(grant.check());
                None
            }
        }
    }
}

/// The client of the task while it runs.
struct Task(Option<Arc<Client>>);

impl Drop for Task {
    /// The runtime ended before the task: the remaining grants end with their TTL. They must not
    /// keep the client alive, which owns them.
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
            // Another task may be started from now on.
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
