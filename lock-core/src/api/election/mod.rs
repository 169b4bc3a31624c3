//! Leader election: an exclusive lock whose holder publishes a value to all observers.

pub(crate) mod leading;
pub(crate) mod observer;

use std::{ops::Deref, sync::Arc, time::Duration};

use self::observer::Observer;
use crate::{
    BoxFuture, Error, Held, Kind, Leader, Lock, LockGuard, LockKind, LockName, Owner, Result,
    api::{client::Client, lock::check_value, options::options},
    machine::finish::Finishing,
};

/// The longest time that [`Election::leader`] takes.
const LEADER_LIMIT: Duration = Duration::from_secs(5);

/// An election with its options: at most one candidate leads, the others wait for their turn in
/// order, and every client can see the leader. Cheap to clone.
///
/// ```no_run
/// # async fn lead(_: lock_core::Leading) {}
/// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
/// let election = locks.election("scheduler")?;
/// // Drops the work when the leadership is lost, and resigns when the work is done.
/// election.run("http://10.0.0.7:8080", |leading| lead(leading)).await
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "an election does nothing until somebody campaigns or looks"]
pub struct Election {
    pub(crate) lock: Lock,
}

impl Election {
    pub(crate) fn new(client: Arc<Client>, name: LockName) -> Result<Self> {
        client.driver.guarantees().check_kind(LockKind::Election)?;
        Ok(Self { lock: Lock::new(client, name, Kind::Exclusive)? })
    }

    options!(|self| self.lock);

    /// Campaigns as this owner. If the owner leads already, on the same connection, a campaign does
    /// not wait: it [proclaims](Leadership::proclaim) its value, and its leadership shares the
    /// hold, with the same token. The latest value stays, and the last of these leaderships to
    /// resign steps down. Default: no owner, so every campaign waits for every other.
    ///
    /// ```no_run
    /// # use lock_core as distlock;
    /// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
    /// let election = locks.election("scheduler")?.owner(&distlock::Owner::new());
    /// let leading = election.campaign("10.0.0.7, starting").await?;
    /// let still = election.campaign("10.0.0.7, ready").await?; // at once
    /// assert_eq!(leading.token(), still.token());
    /// # leading.resign().await?; still.resign().await }
    /// ```
    pub fn owner(self, owner: &Owner) -> Self {
        Self { lock: self.lock.owner(owner) }
    }

    /// Waits until it leads, and then publishes `value` to all observers. The future borrows
    /// nothing, not even the value, so it can be spawned.
    ///
    /// The value is for programs, such as an address. Only [`Leader::value`] shows it, from the
    /// grant on. The description of the candidate, for people, is [`holder`](Self::holder):
    /// [`Leader::holder`], [`Error::WaitTimeout`] and [`Locks::inspect`](crate::Locks::inspect)
    /// show it, also while the candidate waits.
    ///
    /// ```no_run
    /// # fn example(election: &lock_core::Election) {
    /// let me = format!("http://{}:8080", "10.0.0.7");
    /// let campaign = tokio::spawn(election.campaign(&me));
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Same as [`Lock::acquire`]. If its [`owner`](Self::owner) leads already, same as
    /// [`Leadership::proclaim`]; the owner leads on with its earlier leadership.
    /// [`Error::Unsupported`] if the owner holds the plain lock of this name, and the store has a
    /// value only for a leader (etcd, Redis).
    ///
    /// # Cancel safety
    ///
    /// Same as [`Lock::acquire`]. A value that was sent may be proclaimed all the same.
    pub fn campaign<V: AsRef<[u8]>>(&self, value: V) -> BoxFuture<'static, Result<Leadership>> {
        campaign(self.with_value(value))
    }

    /// Leads if no candidate leads or waits, or if its [`owner`](Self::owner) leads; `None`
    /// otherwise.
    ///
    /// # Errors
    ///
    /// Same as [`Lock::try_acquire`] and [`campaign`](Self::campaign).
    ///
    /// # Cancel safety
    ///
    /// Same as [`campaign`](Self::campaign).
    pub fn try_campaign<V: AsRef<[u8]>>(
        &self,
        value: V,
    ) -> BoxFuture<'static, Result<Option<Leadership>>> {
        try_campaign(self.with_value(value))
    }

    /// Returns the present leader; `None` if there is none.
    ///
    /// # Errors
    ///
    /// The store's errors, and [`Error::Unavailable`] if it does not answer for 5 s.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub fn leader(&self) -> BoxFuture<'_, Result<Option<Leader>>> {
        Box::pin(async move {
            let client = &self.lock.client;
            let closed = || Err(Error::closed(client.driver.guarantees().store));
            let first = async { self.observe().await?.next().await.unwrap_or_else(closed) };
            let leader = client.answer(LEADER_LIMIT, first, "leader").await;
            leader.map_err(|error| client.failed("leader", error).about(&self.lock.request.name))
        })
    }

    /// Observes the election from now on: first the present leader, then the leader and its newest
    /// value after each change. Leaders and values that were replaced at once may be left out.
    ///
    /// # Errors
    ///
    /// The store's errors.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub fn observe(&self) -> BoxFuture<'_, Result<Observer>> {
        Box::pin(async move {
            let (client, name) = (&self.lock.client, self.lock.request.name.clone());
            let (driver, asked) = (client.driver.clone(), name.clone());
            let changes = async move { driver.observe(&asked).await };
            let changes = client.home.clone().ask(changes).await;
            let changes = changes.map_err(|error| client.failed("observe", error).about(&name))?;
            Ok(Observer::new(changes, client.home.clone()))
        })
    }

    pub(crate) fn with_value(&self, value: impl AsRef<[u8]>) -> Lock {
        let mut lock = self.lock.clone();
        lock.request.value = Some(value.as_ref().into());
        lock
    }
}

fn campaign(lock: Lock) -> BoxFuture<'static, Result<Leadership>> {
    Box::pin(
        async move { lock.acquire().await.map(Leadership).map_err(|error| error.of("campaign")) },
    )
}

fn try_campaign(lock: Lock) -> BoxFuture<'static, Result<Option<Leadership>>> {
    Box::pin(async move {
        let led = lock.try_acquire().await.map_err(|error| error.of("try_campaign"));
        Ok(led?.map(Leadership))
    })
}

/// The leadership, held until it is resigned, dropped or lost. Derefs to [`Held`].
///
/// Dropping it resigns in the background, like dropping a [`LockGuard`].
#[derive(Debug)]
#[must_use = "dropping the leadership resigns"]
pub struct Leadership(LockGuard);

impl Leadership {
    /// Publishes a new value to all observers. The token stays the same.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if it does not lead any more, [`Error::Unavailable`] if the store did not
    /// answer; calling it again is safe.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop a request that was sent.
    pub fn proclaim(&mut self, value: impl AsRef<[u8]>) -> BoxFuture<'_, Result<()>> {
        (**self).proclaim(value.as_ref().into())
    }

    /// A view of the leadership that can be passed on; it does not hold the leadership.
    pub fn held(&self) -> Held {
        self.0.held()
    }

    /// The guard of the leadership. Its release resigns.
    pub(crate) fn into_guard(self) -> LockGuard {
        self.0
    }

    /// Steps down and waits until the store has confirmed; the next candidate leads.
    ///
    /// # Errors
    ///
    /// Same as [`LockGuard::release`].
    ///
    /// # Cancel safety
    ///
    /// Same as [`LockGuard::release`].
    pub fn resign(self) -> BoxFuture<'static, Result<()>> {
        Box::pin(self.0.release())
    }
}

impl Held {
    /// Publishes a new value to all observers.
    pub(crate) fn publish(&self, value: Arc<[u8]>) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            let hold = self.0.clone();
            hold.check_all()?;
            check_value(&value)?;
            let home = hold.client.home.clone();
            let publish = async move {
                // In order, also if an earlier caller has left.
                let _turn = hold.held_as.turn.lock().await;
                hold.lease.publish(&value).await
            };
            Finishing::new(&home, publish).await
        })
    }

    /// [`publish`](Self::publish), with errors as its caller sees them.
    fn proclaim(&self, value: Arc<[u8]>) -> BoxFuture<'_, Result<()>> {
        let published = self.publish(value);
        Box::pin(async move { published.await.map_err(|error| self.0.failed("proclaim", error)) })
    }
}

impl Deref for Leadership {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.0
    }
}
