//! Leader election: an exclusive lock whose holder says something to everybody.

use std::{
    fmt,
    future::{Future, poll_fn},
    ops::Deref,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::sync::mpsc;
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::{
    Error, FencingToken, Held, Holder, Kind, Lock, LockGuard, LockKind, LockName, Owner, Result,
    api::{locks::Client, options::options},
    machine::{finish::Owned, runtime::Home},
};

/// How long [`Election::leader`] may take at the most.
const LEADER_LIMIT: Duration = Duration::from_secs(5);

/// An election with its options: at most one leads, the others wait for their turn in order, and
/// everybody can see who leads. Cheap to clone.
///
/// ```no_run
/// # async fn lead(_: lock_core::Leading) {}
/// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
/// let election = locks.election("scheduler")?;
/// // Drops the work when the leadership is lost, and resigns when the work is done.
/// election.run("http://10.0.0.7:8080", |leading| lead(leading)).await
/// # }
/// ```
#[derive(Clone)]
#[must_use = "an election does nothing until somebody campaigns or looks"]
pub struct Election {
    pub(crate) lock: Lock,
}

/// Who leads.
#[derive(Clone, Debug, Eq, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Leader {
    /// The fencing token of the leadership: later leaders have greater ones.
    pub token: FencingToken,
    /// What the leader says to everybody.
    pub value: Vec<u8>,
    /// Who it is, as far as the store can tell.
    pub holder: Holder,
}

impl Leader {
    /// A leader as a driver read it.
    pub fn new(token: FencingToken, value: Vec<u8>, holder: Holder) -> Self {
        Self { token, value, holder }
    }
}

/// What a driver sends to an observer: the leader now, or that there is none.
pub type Observed = Result<Option<Leader>>;

impl Election {
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the store has no elections.
    pub(crate) fn new(client: Arc<Client>, name: LockName) -> Result<Self> {
        client.driver.guarantees().check_kind(LockKind::Election)?;
        Ok(Self { lock: Lock::new(client, name, Kind::Exclusive)? })
    }

    options!(|self| self.lock);

    /// Campaigns as this owner. Where it leads already, on the same connection, a campaign does not wait: it
    /// [proclaims](Leadership::proclaim) its value, and its leadership shares the hold, with the same
    /// token. What was proclaimed last stays, and the last of these leaderships to resign steps down.
    /// Default: nobody in particular, so that every campaign waits for every other.
    ///
    /// ```no_run
    /// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
    /// let election = locks.election("scheduler")?.owner(&lock_core::Owner::new());
    /// let leading = election.campaign("10.0.0.7, starting").await?;
    /// let still = election.campaign("10.0.0.7, ready").await?; // at once
    /// assert_eq!(leading.token(), still.token());
    /// # leading.resign().await?; still.resign().await }
    /// ```
    pub fn owner(self, owner: &Owner) -> Self {
        Self { lock: self.lock.owner(owner) }
    }

    /// Waits until it leads, and then says `value` to everybody. The future borrows nothing, not even the
    /// value, so it can be spawned.
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
    /// As [`Lock::acquire`]. Where its [`owner`](Self::owner) leads already, as
    /// [`Leadership::proclaim`]; the owner leads on with its earlier leadership.
    /// [`Error::Unsupported`] if it holds the plain lock of this name, where the store has a value only for a
    /// leader (etcd, Redis).
    ///
    /// # Cancel safety
    ///
    /// As [`Lock::acquire`]. A value that was sent may be proclaimed all the same.
    pub fn campaign<V: AsRef<[u8]>>(
        &self,
        value: V,
    ) -> impl Future<Output = Result<Leadership>> + Send + use<V> + 'static {
        let acquire = self.with_value(value).acquire();
        async move { acquire.await.map(Leadership).map_err(|error| error.of("campaign")) }
    }

    /// Leads if nobody does and nobody waits to, or its [`owner`](Self::owner) does; `None` otherwise.
    ///
    /// # Errors
    ///
    /// As [`Lock::try_acquire`] and [`campaign`](Self::campaign).
    ///
    /// # Cancel safety
    ///
    /// As [`campaign`](Self::campaign).
    pub fn try_campaign<V: AsRef<[u8]>>(
        &self,
        value: V,
    ) -> impl Future<Output = Result<Option<Leadership>>> + Send + use<V> + 'static {
        let acquire = self.with_value(value).try_acquire();
        async move {
            let led = acquire.await.map_err(|error| error.of("try_campaign"));
            Ok(led?.map(Leadership))
        }
    }

    /// Who leads now; `None` if nobody does.
    ///
    /// # Errors
    ///
    /// What the store answers, and [`Error::Unavailable`] if it does not answer for 5 s.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn leader(&self) -> Result<Option<Leader>> {
        let first =
            async { self.observe().await?.next().await.unwrap_or_else(|| Err(self.closed())) };
        let leader = self.lock.answer(LEADER_LIMIT, first, "leader").await;
        leader.map_err(|error| self.lock.client.told("leader", error))
    }

    /// Observes the election from now on: first the leader of this moment, then every change of the
    /// leader or of its value, in order.
    ///
    /// # Errors
    ///
    /// What the store answers.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn observe(&self) -> Result<Observer> {
        let (client, name) = (&self.lock.client, self.lock.request.name.clone());
        let driver = client.driver.clone();
        let changes = client.home.clone().ask(async move { driver.observe(&name).await }).await;
        let changes = changes.map_err(|error| client.told("observe", error))?;
        Ok(Observer::new(changes, client.home.clone()))
    }

    fn closed(&self) -> Error {
        Error::closed(self.lock.client.driver.guarantees().store)
    }

    pub(crate) fn with_value(&self, value: impl AsRef<[u8]>) -> Lock {
        let mut lock = self.lock.clone();
        lock.request.value = Some(value.as_ref().into());
        lock
    }
}

impl fmt::Debug for Election {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Election").field(&self.lock).finish()
    }
}

/// The place at the head, held until it is resigned, dropped or lost. Derefs to [`Held`].
///
/// Dropping it resigns in the background, as dropping a [`LockGuard`] releases.
#[derive(Debug)]
#[must_use = "dropping the leadership resigns"]
pub struct Leadership(LockGuard);

impl Leadership {
    /// Says a new value to everybody. The token stays the same.
    ///
    /// # Errors
    ///
    /// [`Error::Lost`] if it does not lead any more,
    /// [`Error::Unavailable`] if the store did not answer; calling it
    /// again is safe.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop a request that was sent.
    pub async fn proclaim(&mut self, value: impl AsRef<[u8]>) -> Result<()> {
        let published = self.0.publish(value.as_ref().into()).await;
        published.map_err(|error| self.0.held().0.client.told("proclaim", error))
    }

    /// A look at the leadership that can be given away; it does not hold the leadership.
    pub fn held(&self) -> Held {
        self.0.held()
    }

    /// What resigns when it is released.
    pub(crate) fn into_guard(self) -> LockGuard {
        self.0
    }

    /// Steps down and waits until the store has confirmed; the next candidate leads.
    ///
    /// # Errors
    ///
    /// As [`LockGuard::release`].
    ///
    /// # Cancel safety
    ///
    /// As [`LockGuard::release`].
    pub async fn resign(self) -> Result<()> {
        self.0.release().await
    }
}

impl Held {
    /// Says a new value to everybody.
    ///
    /// # Errors
    ///
    /// As [`Leadership::proclaim`].
    ///
    /// # Cancel safety
    ///
    /// As [`Leadership::proclaim`].
    pub(crate) async fn publish(&self, value: Arc<[u8]>) -> Result<()> {
        let inner = self.0.clone();
        inner.check_all()?;
        let home = inner.client.home.clone();
        let publish = async move {
            // In order, also if an earlier caller has left.
            let _turn = inner.grip.turn.lock().await;
            inner.lease.publish(&value).await
        };
        Owned::new(&home, publish, || {}).await
    }
}

impl Deref for Leadership {
    type Target = Held;

    fn deref(&self) -> &Held {
        &self.0
    }
}

/// Who leads, from one change to the next; get it from [`Election::observe`].
///
/// It survives reconnects, and never reports an older leader after a newer one. While it is out of
/// reach it reports nothing; afterwards the leader of that moment, and what came and went meanwhile
/// may be left out.
///
/// Which of two leaders is the older one is told by their tokens. A store that was restored from a
/// backup counts from the past: an observer that has lived through it takes its leaders for old ones,
/// and reports none, until the operator raises the
/// [token floor](crate::Locks::raise_token_floor), as has to be done then.
/// A new observer reports them at once.
pub struct Observer {
    changes: mpsc::Receiver<Observed>,
    home: Arc<Home>,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
    /// What was reported last.
    last: Option<Option<Leader>>,
    newest: Option<FencingToken>,
}

impl Observer {
    fn new(changes: mpsc::Receiver<Observed>, home: Arc<Home>) -> Self {
        let ended = Box::pin(home.ended().cancelled_owned());
        Self { changes, home, ended, last: None, newest: None }
    }

    /// Waits for the next change: who leads now, or `None` that nobody does. The stream ends after
    /// an error, and when the connection is closed.
    ///
    /// # Errors
    ///
    /// [`Error::Denied`], [`Error::Rejected`]: what no
    /// patience helps against. [`Error::Closed`] when the runtime that connected has ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Observed> {
        poll_fn(|cx| self.poll_change(cx)).await
    }

    fn poll_change(&mut self, cx: &mut Context<'_>) -> Poll<Option<Observed>> {
        loop {
            let change = match self.changes.poll_recv(cx) {
                Poll::Ready(change) => change,
                Poll::Pending => {
                    ready!(self.ended.as_mut().poll(cx));
                    Some(Err(self.home.closed()))
                }
            };
            match change {
                None => return Poll::Ready(None),
                Some(Ok(now)) if self.is_old(now.as_ref()) => {}
                Some(Ok(now)) => return Poll::Ready(Some(Ok(self.report(now)))),
                Some(Err(error)) => {
                    self.changes.close();
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }

    /// Whether this was reported already, or is older than what was.
    fn is_old(&self, now: Option<&Leader>) -> bool {
        let older = now.is_some_and(|leader| Some(leader.token) < self.newest);
        older || self.last.as_ref().is_some_and(|last| last.as_ref() == now)
    }

    fn report(&mut self, now: Option<Leader>) -> Option<Leader> {
        self.newest = self.newest.max(now.as_ref().map(|leader| leader.token));
        self.last = Some(now.clone());
        now
    }
}

/// As [`Observer::next`].
#[cfg(feature = "stream")]
impl futures_core::Stream for Observer {
    type Item = Observed;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Observed>> {
        self.poll_change(cx)
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("last", &self.last).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::Location;

    use super::*;
    use crate::Clock;

    fn leader(token: u64, value: &str) -> Option<Leader> {
        Some(Leader::new(FencingToken::new(token), value.into(), Holder::default()))
    }

    #[tokio::test]
    async fn nothing_is_reported_twice_and_nothing_old_after_something_newer() {
        let (tell, changes) = mpsc::channel(16);
        let home = Home::new(Clock::Tokio, "a store", Location::caller());
        let mut observer = Observer::new(changes, home);
        let told = [
            None,
            None,
            leader(1, "a"),
            leader(1, "a"),
            leader(1, "b"),
            leader(3, "c"),
            leader(2, "late"),
            None,
            leader(1, "b"),
            leader(3, "c"),
        ];
        for now in told {
            tell.send(Ok(now)).await.unwrap();
        }
        drop(tell);
        let mut seen = Vec::new();
        while let Some(now) = observer.next().await {
            seen.push(now.unwrap());
        }
        let expected = [None, leader(1, "a"), leader(1, "b"), leader(3, "c"), None, leader(3, "c")];
        assert_eq!(seen, expected);
    }

    #[cfg(feature = "stream")]
    #[tokio::test]
    async fn a_stream_tells_what_next_tells_and_ends_after_an_error() {
        use futures_util::StreamExt as _;

        let (tell, changes) = mpsc::channel(16);
        let home = Home::new(Clock::Tokio, "a store", Location::caller());
        let observer = Observer::new(changes, home);
        for now in [None, None, leader(1, "a")] {
            tell.send(Ok(now)).await.unwrap();
        }
        tell.send(Err(Error::closed("memory"))).await.unwrap();
        let seen: Vec<_> = observer.collect().await;
        assert!(
            matches!(seen.as_slice(), [Ok(None), Ok(Some(_)), Err(Error::Closed { .. })]),
            "{seen:?}"
        );
    }
}
