//! Deadlines of a grant, and its end: lost, given back, given back later, or closed.

use std::{sync::Arc, time::Duration};

use tokio::sync::oneshot;

use crate::{
    Error, Instant, LossReason, Result, Term, Ticket, Validity,
    api::client::{Client, Hold, Later},
    driver::{
        duration::shown,
        trace,
        validity::{self, Watcher, Why},
    },
    keep::poison::lock,
    machine::{
        alarm::{Slot, Watched},
        drain::Stay,
        finish::Finishing,
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

    /// Ends the grant if its deadline has passed, also when the alarm has not rung yet; an error if
    /// it is over, of which its caller knows now.
    pub(crate) fn check(self: &Arc<Self>) -> Result<()> {
        self.end_in_time();
        match self.validity().loss() {
            Some(reason) => {
                self.validity().look().end();
                Err(self.loss_error(reason))
            }
            None => Ok(()),
        }
    }

    fn end_in_time(self: &Arc<Self>) {
        if self.client.home.now() >= self.until() {
            self.expire();
        }
    }

    /// Whether anything can still be done with the grant.
    pub(crate) fn check_all(self: &Arc<Self>) -> Result<()> {
        self.client.home.check_process()?;
        self.check()
    }

    pub(crate) fn loss_error(&self, reason: LossReason) -> Error {
        Error::Lost { name: self.name.clone(), reason }
    }

    /// A driver's error as the caller sees it, with the lock's name.
    pub(crate) fn failed(&self, op: &'static str, error: Error) -> Error {
        self.client.failed(op, error).about(&self.name)
    }

    /// The ticket of a grant that is detached.
    pub(crate) fn ticket(&self, place: String) -> Ticket {
        let store = self.client.driver.guarantees().store;
        let now = self.client.home.now();
        let hold_left = (self.cap != Instant::NEVER).then(|| self.cap.since(now));
        let (name, token) = (self.name.clone(), self.lease.token());
        let (ttl, term) = (self.ttl, self.term);
        Ticket { store: store.into(), name, token, ttl, term, hold_left, place }
    }

    fn expire(self: &Arc<Self>) {
        let reason = match self.term {
            _ if self.cap <= self.validity().until() => LossReason::MaxHold,
            Term::Fixed => LossReason::TermOver,
            Term::Renewed => LossReason::Expired,
        };
        if !self.end(Why::Lost(reason)) {
            return;
        }
        let margin = validity::margin(self.ttl);
        let pause = match reason {
            LossReason::Expired if self.lease.ends_by_itself() => return,
            // If its session was not renewed either, it has ended by then, with all of its entries.
            LossReason::Expired => margin * 2,
            // The holder has time to stop. Given back at once, the lock could be granted again
            // before this holder notices its loss.
            _ => margin,
        };
        self.give_back_at(self.client.home.now() + pause, None);
    }

    /// Ends the grant; returns false if it had ended before.
    pub(crate) fn end(&self, why: Why) -> bool {
        let first = self.validity().end(why);
        if first {
            self.client.alarm.remove(self);
            self.forget_later();
        }
        first
    }

    /// Ends the grant for its holder, and gives it back: at once, or when its minimum hold time is
    /// over. Until then it is still valid and renewed. Dropping the result stops neither. `None` if
    /// the grant had ended before.
    pub(crate) fn finish(self: &Arc<Self>, why: Why, stay: &mut Option<Stay>) -> Option<Ending> {
        if self.validity().has_ended() {
            self.stop_looking();
        }
        // Only then: a guard may be dropped where the clock cannot be read.
        let least = self.least.get().filter(|_| why == Why::Released);
        if let Some(least) = least.filter(|least| **least > self.client.home.now()) {
            let (reply, released) = oneshot::channel();
            self.give_back_at(*least, Some(reply));
            return Some(Ending::Later(self.clone(), released));
        }
        self.end(why).then(|| {
            let work = self.clone().give_back(stay.take());
            Ending::Now(Finishing::new(&self.client.home, work))
        })
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
    fn trace_release(&self, result: &Result<()>) {
        match result {
            Ok(()) => trace::released(&self.name, self.lease.token()),
            Err(error) => trace::release_failed(&self.name, self.lease.token(), error),
        }
    }

    /// The alarm gives it back at `at`: no task and no timer waits for each grant.
    fn give_back_at(self: &Arc<Self>, at: Instant, reply: Option<oneshot::Sender<Result<()>>>) {
        let mut later = lock(&self.later);
        // A loss comes first: it gives back, or there is nothing to give back.
        if reply.is_some() && self.validity().has_ended() {
            return;
        }
        *later = Some(Later { grant: self.clone(), at, reply });
        drop(later);
        self.set_alarm();
        // The runtime may have ended before the alarm had it.
        if self.client.home.check().is_err() {
            self.forget_later();
        }
    }

    fn forget_later(&self) {
        lock(&self.later).take();
    }

    pub(crate) fn set_alarm(self: &Arc<Self>) {
        self.client.alarm.add(self, |_| self.next_ring());
    }

    /// When the alarm must ring next: at the deadline, when the grant is given back, or for the look
    /// at its guard.
    fn next_ring(&self) -> Option<Instant> {
        let later = lock(&self.later).as_ref().map(|later| later.at);
        let until = (!self.validity().has_ended()).then(|| self.until());
        until.into_iter().chain(later).chain(self.validity().look().at()).min()
    }

    /// Tells of a guard that is still there a TTL after the loss was found, of which nobody has
    /// asked since. A close is told as a release, and not as a loss.
    fn look(&self, now: Instant) {
        let lost = self.validity().loss().filter(|reason| *reason != LossReason::Closed);
        let Some(reason) = lost.filter(|_| self.held_as.has_guards()) else { return };
        if self.validity().look().take(now) {
            trace::forgotten(&self.name, self.lease.token(), reason);
        } else if trace::warns() {
            self.validity().look().set(now + self.ttl);
        }
    }

    /// The last guard of a lost grant has gone.
    fn stop_looking(self: &Arc<Self>) {
        self.validity().look().end();
        self.client.alarm.remove(self);
        // It may still have to be given back.
        self.set_alarm();
    }
}

impl Watched for Hold {
    fn ring(self: Arc<Self>, now: Instant) -> Option<Instant> {
        if !self.validity().has_ended() {
            // If it ends here, the alarm is set for what follows. If the driver has lost it,
            // a kept grant is forgotten below.
            self.end_in_time();
        }
        let has_ended = self.validity().has_ended();
        let is_due = |later: &mut Later| later.at <= now || has_ended && later.reply.is_some();
        let due = lock(&self.later).take_if(is_due);
        self.look(now);
        let Some(Later { grant, reply, .. }) = due else { return self.next_ring() };
        // A grant that was kept, and lost meanwhile by the store's word, has no entry.
        if reply.is_none() || self.end(Why::Released) {
            self.client.home.runtime.spawn(async move {
                let released = grant.give_back(None).await;
                // Its holder may have stopped waiting. A failure is traced.
                let _ = reply.map(|reply| reply.send(released));
            });
        }
        self.next_ring()
    }

    fn silenced(self: Arc<Self>) {
        // It must not keep the client alive, which owns it.
        self.forget_later();
    }

    fn slot(&self) -> &Slot {
        &self.slot
    }
}

impl Watcher for Hold {
    fn shortened(self: Arc<Self>) {
        // If it has ended since, the alarm finds that out.
        self.set_alarm();
    }
}

/// The end of a hold, on its way to the store. It goes on if this is dropped.
pub(crate) enum Ending {
    Now(Finishing<()>),
    /// When the minimum hold time is over.
    Later(Arc<Hold>, oneshot::Receiver<Result<()>>),
}

impl Ending {
    /// Waits until it is over. The error is [`Error::Lost`] if a grant that is kept is
    /// lost before, and [`Error::Closed`] if the client's runtime ends before.
    pub(crate) async fn outcome(self) -> Result<()> {
        match self {
            Self::Now(release) => release.await,
            Self::Later(grant, released) => tokio::select! {
                biased;
                // First: a loss forgets the release.
                reason = grant.validity().lost() => Err(grant.loss_error(reason)),
                released = released => {
                    released.unwrap_or_else(|_| Err(grant.client.home.closed()))
                }
            },
        }
    }
}

impl Client {
    /// Gives everything back, or waits until the first caller has done so. A second one returns the
    /// error of the first: it cannot confirm more.
    pub(super) async fn close(&self) -> Result<()> {
        let mut own = None;
        let closed = self.close.get_or_init(async || {
            let closed = self.give_all_back().await;
            let outcome = closed.as_ref().copied().map_err(ToString::to_string);
            self.close_ended.cancel();
            own = Some(closed);
            outcome
        });
        let first = closed.await.clone().map_err(|why| {
            self.unavailable("close", format!("the first close was not confirmed: {why}"))
        });
        own.unwrap_or(first).map_err(|error| self.failed("close", error))
    }

    async fn give_all_back(&self) -> Result<()> {
        let mut held = self.alarm.drain();
        held.retain(|grant| {
            // Before the request: no client must be granted a lock that still counts as held here.
            let ends = grant.validity().lose(LossReason::Closed);
            // A lost grant would be given back later: the close does it now.
            let later = lock(&grant.later).take();
            // The guard of a grant that was lost before may still be there.
            grant.look(self.home.now());
            grant.set_alarm();
            ends || later.is_some_and(|later| later.reply.is_none())
        });
        let closed = tokio::time::timeout(CLOSE_LIMIT, self.driver.close()).await;
        let closed = closed.unwrap_or_else(|_| {
            Err(self.unavailable("close", format!("not confirmed within {}", shown(CLOSE_LIMIT))))
        });
        held.iter().for_each(|grant| grant.trace_release(&closed));
        closed
    }
}
