//! A connected store.

use std::{fmt, sync::Arc, time::Duration};

use tokio::runtime::Handle;
use uuid::Uuid;

use crate::{
    Clock, DistributedLock, Effect, Election, Entry, Error, FencingToken, Guarantees, Kind, Lock,
    LockGuard, LockName, LockSet, Result, Semaphore, Ticket, TokenFloor,
    adopt::adopt,
    alarm::Alarm,
    floor,
    held::Inner,
    owned::{Home, Owned},
    request::Heard,
    returns::Returns,
    signal, trace,
    vain::Looks,
};

/// How long [`Locks::close`] may take at the most.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// A store of locks: what `connect` returns. Cheap to clone; all clones share one session.
///
/// Locks that are held keep the session alive. When the last clone and the last guard are gone, the
/// session ends in the background.
#[derive(Clone)]
pub struct Locks {
    client: Arc<Client>,
}

/// What all locks of one connection share.
pub(crate) struct Client {
    pub(crate) driver: Arc<dyn DistributedLock>,
    pub(crate) clock: Clock,
    pub(crate) alarm: Arc<Alarm<Inner>>,
    pub(crate) home: Arc<Home>,
    pub(crate) looks: Looks,
    pub(crate) returns: Returns,
    pub(crate) heard: Arc<Heard>,
}

impl Locks {
    /// Locks of a driver, for code that does not connect by URL.
    ///
    /// # Panics
    ///
    /// If it is called outside a tokio runtime.
    pub fn new(driver: impl DistributedLock) -> Self {
        let (clock, runtime) = (driver.clock(), Handle::current());
        let client = Client {
            driver: Arc::new(driver),
            clock,
            alarm: Alarm::start(clock, &runtime),
            home: Home::new(clock, &runtime),
            looks: Looks::default(),
            returns: Returns::default(),
            heard: Arc::new(Heard::new(clock)),
        };
        Self { client: Arc::new(client) }
    }

    /// An exclusive lock, to be configured and acquired; beside [`shared`](Self::shared) ones of
    /// the same name it is the writer's. Nothing is sent yet.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidName`] if the name is empty or longer than
    /// [`LockName::MAX_BYTES`].
    pub fn lock(&self, name: impl AsRef<str>) -> Result<Lock> {
        Lock::new(self.client.clone(), LockName::new(name)?, Kind::Exclusive)
    }

    /// A shared lock: any number of holders together, none beside an exclusive one of the same
    /// name. First come, first served: a reader waits behind a writer that came before it, so
    /// neither side starves; readers that follow each other enter together.
    ///
    /// # Errors
    ///
    /// As [`lock`](Self::lock), and [`Error::Unsupported`] if the store
    /// has no shared locks.
    pub fn shared(&self, name: impl AsRef<str>) -> Result<Lock> {
        Lock::new(self.client.clone(), LockName::new(name)?, Kind::Shared)
    }

    /// A semaphore: at most this many permits are held at a time. Whoever uses the name must name
    /// the same number; another one is an error when it is acquired.
    ///
    /// # Errors
    ///
    /// As [`shared`](Self::shared), and [`Error::InvalidOption`] for
    /// no permits.
    pub fn semaphore(&self, name: impl AsRef<str>, permits: u32) -> Result<Semaphore> {
        Semaphore::new(self.client.clone(), LockName::new(name)?, permits)
    }

    /// Several exclusive locks, to be acquired together: all or nothing.
    ///
    /// # Errors
    ///
    /// As [`lock`](Self::lock), and for no name at all.
    pub fn all(&self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Result<LockSet> {
        LockSet::new(self.client.clone(), names)
    }

    /// An election: at most one leads at a time, and everybody can see who and what it says.
    ///
    /// # Errors
    ///
    /// As [`shared`](Self::shared).
    pub fn election(&self, name: impl AsRef<str>) -> Result<Election> {
        Election::new(self.client.clone(), LockName::new(name)?)
    }

    /// Takes up a lock that was [left](crate::LockGuard::detach), here or by another process: the same
    /// grant with the same fencing token, renewed from now on as it was before. A ticket can be used
    /// once, and until one TTL after the lock was detached. The store must be the one that granted it,
    /// with the same layout and prefix.
    ///
    /// Between the two nobody holds the lock, and nobody else is granted it: so what the work left
    /// behind is still there for who adopts it, and for nobody else.
    ///
    /// ```no_run
    /// # async fn example(locks: lock_core::Locks) -> Result<(), Box<dyn std::error::Error>> {
    /// let ticket = std::env::var("DEPLOY_TICKET")?.parse()?;
    /// let guard = locks.adopt(&ticket).await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// - [`Error::Lost`] with [`LossReason::Adopted`](crate::LossReason::Adopted) if the ticket has been
    ///   used, and with [`LossReason::TicketOver`](crate::LossReason::TicketOver) if the lock is not
    ///   there any more: its TTL was over, or it was revoked, or released by who adopted it. Acquire it
    ///   anew then.
    /// - [`Error::InvalidOption`] if the ticket is of another store.
    /// - [`Error::Unsupported`] if the store cannot do it.
    /// - [`Error::Unavailable`] if the store did not answer for one TTL: the lock is free then, or soon,
    ///   also if the request took effect.
    /// - [`Error::Denied`], [`Error::Rejected`], [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future gives the lock back if it was adopted, in the background. A future that is not
    /// polled is treated as that of [`Lock::acquire`].
    ///
    /// # Panics
    ///
    /// If it is polled outside a tokio runtime.
    pub fn adopt(&self, ticket: &Ticket) -> impl Future<Output = Result<LockGuard>> + Send + use<> {
        adopt(self.client.clone(), ticket.clone())
    }

    /// Who holds the lock and who waits for it, the holders first; empty if it is free.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidName`], and what the store answers.
    pub async fn inspect(&self, name: impl AsRef<str>) -> Result<Vec<Entry>> {
        let queue = self.client.driver.inspect(&LockName::new(name)?).await;
        queue.map_err(|error| error.of("inspect"))
    }

    /// The names that somebody holds or waits for and that start with `prefix` (all of them if it
    /// is empty), in order. What comes and goes meanwhile may be missing.
    ///
    /// # Errors
    ///
    /// What the store answers.
    pub async fn names(&self, prefix: impl AsRef<str>) -> Result<Vec<LockName>> {
        let names = self.client.driver.names(prefix.as_ref()).await;
        names.map_err(|error| error.of("names"))
    }

    /// For operators: takes a lock away from a holder, or a place from a waiter, of whatever
    /// process. The `attempt` is the one that [`inspect`](Self::inspect) shows. The victim's guard
    /// is lost with [`LossReason::EntryGone`](crate::LossReason::EntryGone), as soon as the store's
    /// [`LossSignal`](crate::LossSignal) comes to it, and the next in line is served: this may
    /// overlap with the victim's work, which only the fencing token stops. Answers whether there
    /// was such an entry.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidName`], and what the store answers.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop a request that was sent.
    pub async fn revoke(&self, name: impl AsRef<str>, attempt: Uuid) -> Result<bool> {
        let revoked = self.client.driver.revoke(&LockName::new(name)?, attempt).await;
        revoked.map_err(|error| error.of("revoke"))
    }

    /// How far the store's fencing tokens have come: what they are above, and up to which number
    /// they were handed out.
    ///
    /// # Errors
    ///
    /// What the store answers; [`Error::Unsupported`] if it keeps no such record.
    pub async fn token_floor(&self) -> Result<TokenFloor> {
        self.client.driver.token_floor().await.map_err(|error| error.of("token floor"))
    }

    /// For operators: makes every later token of every name greater than `above`, of all clients,
    /// whenever they connected. To be called when a store takes the place of another one, with the
    /// [newest](TokenFloor::newest) token of that one, and when a store was restored from a backup or
    /// made anew, with the greatest token that the resources have seen: else these refuse its holders.
    /// Only upwards; a floor that is as high stays.
    ///
    /// It ends what was there before: holders whose token is not above the floor are
    /// [revoked](Self::revoke), and so are waiters whose token would not be. Their next acquire is
    /// above it. When this returns, nobody holds or is granted a lock with a token at or below
    /// `above`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidOption`] above [`Guarantees::greatest_floor`], [`Error::Unsupported`], and what
    /// the store answers. After a failure call it again: the floor may be raised, and not everybody
    /// below it ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave some that were there before; calling it again ends them.
    pub async fn raise_token_floor(&self, above: FencingToken) -> Result<TokenFloor> {
        let raised = floor::raise(&*self.client.driver, above).await;
        raised.map_err(|error| error.of("raise the token floor"))
    }

    /// Gives back everything that this connection holds, leaves every queue and ends the session.
    /// Returns when the store has confirmed, after at most 5 s. All clones are closed with it:
    /// guards are lost ([`LossReason::SessionEnded`](crate::LossReason::SessionEnded)), waiters and
    /// later calls are told [`Error::Closed`]. Stop the work first: the next holder may be granted
    /// at once. Closing twice does nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if the store did not confirm in time; what was held is then free
    /// after its TTL.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop it.
    pub async fn close(&self) -> Result<()> {
        let driver = self.client.driver.clone();
        let close = async move {
            match tokio::time::timeout(CLOSE_LIMIT, driver.close()).await {
                Ok(closed) => closed.map_err(|error| error.of("close")),
                Err(_) => Err(Error::Unavailable {
                    store: driver.guarantees().store,
                    op: "close",
                    effect: Effect::Unknown,
                    source: format!("not confirmed within {CLOSE_LIMIT:.1?}").into(),
                }),
            }
        };
        Owned::new(&self.client.home, close, || {}).await
    }

    /// Does the work until it is done or the program is asked to end, by SIGINT or SIGTERM
    /// (elsewhere than on Unix: by ctrl-c); then [closes](Self::close). A signal drops the work at
    /// its next await point, before anything is given back; tasks that it spawned must end with it.
    /// Answers what the work came to, `None` after a signal.
    ///
    /// From the first poll on, these signals do not end the program by themselves any more.
    ///
    /// ```no_run
    /// # async fn work(_: &lock_core::Locks) -> u32 { 0 }
    /// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
    /// match locks.close_on_signal(work(&locks)).await? {
    ///     Some(done) => println!("done: {done}"),
    ///     None => println!("stopped; everything is given back"),
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// After a signal, as [`close`](Self::close). Where the work was done, a close that failed is
    /// traced, and what was held is free after its TTL.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work; a close that has begun goes on.
    pub async fn close_on_signal<T>(&self, work: impl Future<Output = T>) -> Result<Option<T>> {
        // The work is gone when this is over, whichever of the two ends it.
        let done = tokio::select! {
            done = work => Some(done),
            () = signal::asks_to_end() => None,
        };
        match (self.close().await, done) {
            (closed, None) => closed.map(|()| None),
            (Err(error), done) => {
                // The work was done all the same.
                trace::close_failed(self.guarantees().store, &error);
                Ok(done)
            }
            (Ok(()), done) => Ok(done),
        }
    }

    /// What the store promises.
    pub fn guarantees(&self) -> &Guarantees {
        self.client.driver.guarantees()
    }

    /// The driver itself, for tests of drivers.
    pub fn driver(&self) -> &Arc<dyn DistributedLock> {
        &self.client.driver
    }
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Locks").field(&self.client.driver).finish()
    }
}
