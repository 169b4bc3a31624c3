//! A lock that is held.

use std::{fmt, ops::Deref, sync::Arc};

use crate::{
    BoxFuture, Error, Held, Instant, Kind, LockKind, LossReason, Result, Ticket,
    api::{client::Hold, hold::Ending},
    driver::{trace, validity::Why},
    machine::{drain::Stay, finish::Finishing},
};

/// A lock that is held until it is released, dropped, or lost. Derefs to [`Held`].
///
/// # Drop behaviour
///
/// Dropping a guard queues a release that runs in the background. The next waiter gets the lock as
/// soon as the store has the release, not after the TTL. With [`at_least`](crate::Lock::at_least),
/// the release waits until that time is over. If the runtime has ended, the lock is free after its
/// TTL. Use [`release`](Self::release) to wait for the store's confirmation.
///
/// # What it does not promise
///
/// A process can be paused past its TTL and write late. Check [`is_valid`](Held::is_valid) before a
/// write, and let the resource check [`token`](Held::token): only that closes the gap.
#[must_use = "dropping the guard releases the lock"]
pub struct LockGuard {
    held: Held,
    /// Whether this guard still counts among the guards of its grant.
    counts: bool,
    /// Counts for a drain; dropped after the release.
    stay: Option<Stay>,
}

impl LockGuard {
    /// The guard of a new grant; an error if the connection is being drained. It comes after the
    /// lock was given back: the process may end with it.
    pub(crate) async fn of_grant(held: Held) -> Result<Self> {
        let client = held.0.client.clone();
        let stay = client.drain.enter();
        let is_refused = stay.is_none();
        let guard = Self { held, counts: true, stay };
        if is_refused {
            // A failure is traced.
            let _ = guard.release().await;
            return Err(client.drained_error());
        }
        Ok(guard)
    }

    /// A guard that is already counted for its grant and for the client.
    pub(crate) fn counted(held: Held, stay: Stay) -> Self {
        Self { held, counts: true, stay: Some(stay) }
    }

    pub(crate) fn granted(&self) -> Instant {
        self.held.0.granted
    }

    /// Holds the lock at least until then, even if it is given back earlier.
    pub(crate) fn at_least(&self, until: Instant) {
        // Set once for each grant.
        let _ = self.held.0.least.set(until);
    }

    /// A view of the lock that can be passed on; it does not hold the lock.
    pub fn held(&self) -> Held {
        self.held.clone()
    }

    /// Turns an exclusive lock into a shared one without a gap. It keeps its place in the queue, so
    /// no writer gets in between, and readers that wait right behind it enter. A shared lock stays
    /// as it is.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if the lock is not held any more, [`Error::Unsupported`] if the store has no
    /// shared locks or the guard holds a semaphore's permits, [`Error::Unavailable`] if the store
    /// did not answer: the lock then counts as shared, and calling it again is safe.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop a request that was sent.
    pub fn downgrade(&mut self) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let converted = self.convert(Kind::Shared).await.map(drop);
            converted.map_err(|error| self.held.0.failed("downgrade", error))
        })
    }

    /// Turns a shared lock into an exclusive one if no other client holds it or waits for it;
    /// returns whether it did. It never waits: two readers that wait for each other to leave would
    /// wait for ever. After `false`, release the lock and acquire the exclusive one.
    ///
    /// Afterwards the [token](Held::token) is new, and greater than every earlier reader's.
    ///
    /// # Errors
    ///
    /// Same as [`downgrade`](Self::downgrade).
    ///
    /// # Cancel safety
    ///
    /// Same as [`downgrade`](Self::downgrade).
    pub fn try_upgrade(&mut self) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            let converted = self.convert(Kind::Exclusive).await;
            converted.map_err(|error| self.held.0.failed("try_upgrade", error))
        })
    }

    async fn convert(&mut self, to: Kind) -> Result<bool> {
        let hold = self.held.0.clone();
        hold.check_all()?;
        hold.client.driver.guarantees().check_kind(LockKind::Shared)?;
        let conversion = async move {
            let _turn = hold.held_as.turn.lock().await;
            hold.held_as.settle(&*hold.lease).await?;
            if !hold.held_as.begin(to).map_err(|what| hold.client.unsupported(what))? {
                return Ok(true);
            }
            let done = hold.held_as.ask(&*hold.lease, to).await?;
            if done {
                trace::converted(&hold.name, hold.lease.token(), to);
            }
            Ok(done)
        };
        Finishing::new(&self.held.0.client.home, conversion).await
    }

    /// Gives back a grant that was not collected, and returns the error for its caller.
    pub(crate) fn not_collected(mut self) -> Error {
        drop(self.finish(Why::Lost(LossReason::NotCollected)));
        let hold = &self.held.0;
        hold.loss_error(hold.lease.validity().loss().unwrap_or(LossReason::NotCollected))
    }

    /// Ends this guard; the last one of a grant ends the hold. Every end goes this way, and goes on
    /// if the result is dropped. `None` if other guards hold the grant, or it had ended before.
    fn finish(&mut self, why: Why) -> Option<Ending> {
        let last = std::mem::take(&mut self.counts) && self.held.0.held_as.leave();
        last.then(|| self.held.0.finish(why, &mut self.stay)).flatten()
    }

    /// Releases the lock and waits until the store has confirmed. If an [`Owner`](crate::Owner)
    /// holds several guards of one grant, the last one releases it. With
    /// [`at_least`](crate::Lock::at_least) it also waits for that time; dropping the guard does
    /// not.
    ///
    /// # Errors
    ///
    /// - [`Error::Lost`](crate::Error::Lost) if the lock was lost before: another client may have
    ///   held it meanwhile.
    /// - [`Error::Unavailable`](crate::Error::Unavailable) if the store did not confirm as long as
    ///   it mattered; the lock is then free after its TTL.
    /// - [`Error::Closed`](crate::Error::Closed) if the runtime that connected has ended; the lock
    ///   is then free after its TTL.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop the release: it goes on in the background.
    pub async fn release(mut self) -> Result<()> {
        let hold = self.held.0.clone();
        let released = self.released(&hold).await;
        hold.client.after_loss(&released).await;
        released
    }

    async fn released(&mut self, hold: &Arc<Hold>) -> Result<()> {
        hold.check_all()?;
        match self.finish(Why::Released) {
            Some(ending) => ending.outcome().await.map_err(|error| hold.failed("release", error)),
            // It may be lost since the check.
            None => hold.check(),
        }
    }

    /// Leaves the lock to another process, or to another part of this one, that adopts it with
    /// [`Locks::adopt`](crate::Locks::adopt). The lock stays taken for one TTL from now. The
    /// adopter gets the same fencing token and the same place: no other client is granted the lock
    /// in between.
    ///
    /// Before the request is sent, this guard and everything that was made from it count as
    /// released: [`is_valid`](Held::is_valid) is false and nothing is renewed any more. A detached
    /// lock stays taken when the process ends or [closes](crate::Locks::close) its connection. If
    /// it is not adopted, it is free after its TTL.
    ///
    /// **Stop the work first.** The fencing token stays the same, so no resource can tell this
    /// holder from the next one: a late write from here is not rejected.
    ///
    /// The rest of the [maximum hold time](crate::Lock::max_hold) goes on with the adoption; a
    /// [minimum one](crate::Lock::at_least) is over.
    ///
    /// Exclusive locks only. [`Guarantees::detach`](crate::Guarantees::detach) says whether the
    /// store can do it.
    ///
    /// # Errors
    ///
    /// After each of them the lock is given back in the background, as if the guard was dropped.
    ///
    /// - [`Error::Lost`] if the lock was lost before.
    /// - [`Error::Unsupported`] if the store cannot do it, with the reason; if the lock is not
    ///   exclusive; or if its [`Owner`](crate::Owner) holds it more than once.
    /// - [`Error::Unavailable`] if the store did not answer; then there is no ticket.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop a request that was sent. The ticket is lost then, and the
    /// lock is free after its TTL.
    pub fn detach(self) -> BoxFuture<'static, Result<Ticket>> {
        Box::pin(self.leave_to_another())
    }

    async fn leave_to_another(mut self) -> Result<Ticket> {
        let hold = self.held.0.clone();
        hold.check_all()?;
        let refused = |what: &str| Err(hold.client.unsupported(what));
        if hold.held_as.kind() != Kind::Exclusive {
            return refused("leave a shared lock, or a semaphore's permits, to another process");
        }
        if !hold.held_as.leave_alone() {
            return refused("leave a lock to another process that its owner holds more than once");
        }
        self.counts = false;
        if !hold.end(Why::Released) {
            // Lost between the check and here.
            let reason = hold.lease.validity().loss();
            return Err(hold.loss_error(reason.unwrap_or(LossReason::EntryGone)));
        }
        let home = hold.client.home.clone();
        let left = Finishing::new(&home, leave(hold, self.stay.take())).await;
        left.map_err(|error| self.held.0.failed("detach", error))
    }
}

/// Asks the store to keep the lock for the ticket.
async fn leave(hold: Arc<Hold>, stay: Option<Stay>) -> Result<Ticket> {
    let _turn = hold.held_as.turn.lock().await;
    match hold.lease.detach().await {
        Ok(place) => {
            trace::detached(&hold.name, hold.lease.token());
            Ok(hold.ticket(place))
        }
        Err(error) => {
            hold.client.home.runtime.spawn(hold.clone().give_back(stay));
            Err(error)
        }
    }
}

impl Deref for LockGuard {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.held
    }
}

impl Drop for LockGuard {
    fn drop(&mut self) {
        drop(self.finish(Why::Released));
    }
}

impl fmt::Debug for LockGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LockGuard").field(&self.held).finish()
    }
}
