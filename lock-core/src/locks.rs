//! A connected store.

use std::{fmt, panic::Location, sync::Arc, time::Duration};

use futures_util::Stream;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    Clock, ClosedBy, ConnectionState, DistributedLock, Effect, Election, Entry, Error,
    FencingToken, Guarantees, Kind, Lock, LockGuard, LockName, LockSet, Reach, Result, Semaphore,
    Ticket, TokenFloor, adopt::adopt, alarm::Alarm, close::Close, drain::Drain, duration::shown,
    floor, held::Inner, home::Home, owned::Owned, request::Heard, returns::Returns, signal, trace,
    vain::Looks,
};

/// How long [`Locks::ping`] may take at the most.
const PING_LIMIT: Duration = Duration::from_secs(5);
/// The name that [`Locks::ping`] looks at.
const PING_NAME: &str = "distlock/ping";

/// A store of locks: what `connect` returns. Cheap to clone; all clones share one session.
///
/// Locks that are held keep the session alive. When the last clone and the last guard are gone, the
/// session ends in the background.
///
/// # Runtimes
///
/// A connection lives in the tokio runtime in which it was made: what renews the locks runs there.
/// Calls may come from any runtime; they wait until that one has done the work. So it must live, and
/// run: a current-thread runtime does so only within its `block_on`.
///
/// When that runtime has ended, every call is [`Error::Closed`] at once, with
/// [`ClosedBy::Runtime`](crate::ClosedBy::Runtime) naming the runtime, and
/// [`Held::lost`](crate::Held::lost) is ready. What was held is free after its TTL. So a connection in
/// a `static` is for a program with one runtime: each `#[tokio::test]` has a runtime of its own, and
/// connects for itself. Where runtimes come and go, one that lives as long as the connection makes it,
/// or [`blocking`](crate::blocking) does, which has a runtime of its own.
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
    pub(crate) drain: Arc<Drain>,
    reach: Reach,
    pub(crate) closed: CancellationToken,
    /// The servers' addresses, where a URL named them.
    servers: Option<String>,
    pub(crate) close: Close,
}

impl Client {
    /// An error of the driver as the caller is told: with the caller's word for what failed, and where.
    pub(crate) fn told(&self, op: &'static str, error: Error) -> Error {
        match error {
            // A driver whose tasks are gone knows no other word for it.
            Error::Closed { by: ClosedBy::Program, .. } if !self.closed.is_cancelled() => {
                self.home.check().err().unwrap_or(error)
            }
            error => self.placed(error.of(op)),
        }
    }

    /// The store is out of reach, and may have done what it was asked for.
    pub(crate) fn unavailable(&self, op: &'static str, why: String) -> Error {
        let store = self.driver.guarantees().store;
        Error::Unavailable { store, op, effect: Effect::Unknown, source: why.into() }
    }

    /// The same error with the servers' addresses.
    pub(crate) fn placed(&self, error: Error) -> Error {
        error.at(self.servers.as_deref())
    }
}

impl Locks {
    /// Locks of a driver, for code that does not connect by URL. Call it in the runtime in which the
    /// driver was connected: that one is named, and its end is noticed.
    ///
    /// # Panics
    ///
    /// If it is called outside a tokio runtime.
    #[track_caller]
    pub fn new(driver: impl DistributedLock) -> Self {
        Self::connected(driver, Location::caller(), None)
    }

    /// Locks of a driver that was connected at `place`, with the addresses of its servers.
    pub(crate) fn connected(
        driver: impl DistributedLock,
        place: &'static Location<'static>,
        servers: Option<String>,
    ) -> Self {
        let clock = driver.clock();
        let home = Home::new(clock, driver.guarantees().store, place);
        let reach = driver.reach().unwrap_or_default();
        let client = Client {
            driver: Arc::new(driver),
            clock,
            alarm: Alarm::start(clock, &home.runtime, None),
            home,
            looks: Looks::default(),
            returns: Returns::default(),
            heard: Arc::new(Heard::new(clock)),
            drain: Arc::default(),
            reach,
            closed: CancellationToken::new(),
            servers,
            close: Close::default(),
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

    /// Several exclusive locks, to be acquired together: all or nothing. The set's
    /// [`shared`](LockSet::shared) and [`and_shared`](LockSet::and_shared) are for shared ones.
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
    ///   there any more: its TTL was over, or it was revoked, or released by who adopted it, or the
    ///   [token floor](Self::raise_token_floor) was raised above its token. Acquire it anew then.
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
        let (driver, name) = (self.client.driver.clone(), LockName::new(name)?);
        let queue = self.client.home.clone().ask(async move { driver.inspect(&name).await });
        queue.await.map_err(|error| self.client.told("inspect", error))
    }

    /// The names that somebody holds or waits for and that start with `prefix` (all of them if it
    /// is empty), in order. What comes and goes meanwhile may be missing.
    ///
    /// # Errors
    ///
    /// What the store answers.
    pub async fn names(&self, prefix: impl AsRef<str>) -> Result<Vec<LockName>> {
        let (driver, prefix) = (self.client.driver.clone(), prefix.as_ref().to_owned());
        let names = self.client.home.clone().ask(async move { driver.names(&prefix).await });
        names.await.map_err(|error| self.client.told("names", error))
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
        let (driver, name) = (self.client.driver.clone(), LockName::new(name)?);
        let revoked = async move { driver.revoke(&name, attempt).await };
        let revoked = self.client.home.clone().ask(revoked).await;
        revoked.map_err(|error| self.client.told("revoke", error))
    }

    /// Asks the store for something small, and tells how long the answer took: whether an acquire
    /// would be answered now. For a readiness check; whether the program itself is well does not
    /// depend on it. It changes nothing.
    ///
    /// | store | what it asks | what passes, too |
    /// |---|---|---|
    /// | SQLite, PostgreSQL, MySQL | an update of no row: refused while the store takes no writes or somebody keeps the file locked | a full disk; a login that may update and not insert |
    /// | etcd | a read that a majority confirms | a database that is full (`NOSPACE`); a login that may not write |
    /// | Redis | a script that reads | a server that refuses writes: a replica, `min-replicas-to-write` without one, no memory left |
    /// | ZooKeeper | a read of the server that it is connected to | for some time, a member that is cut off from its leader; a login that may not create |
    /// | memory | the store, through its scripted network | - |
    ///
    /// Where the table says a read, it is the queue of the name `distlock/ping`, which a login that is
    /// limited to some names must be allowed to read.
    ///
    /// ```no_run
    /// # async fn example(locks: lock_core::Locks) {
    /// match locks.ping().await {
    ///     Ok(took) => println!("ready: answered in {took:.1?}"),
    ///     Err(error) => println!("not ready: {error}"),
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if there is no answer within 5 s, and what else the store answers.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind; so a shorter limit is a `timeout` around it.
    ///
    /// # Panics
    ///
    /// If it is polled outside a tokio runtime.
    pub async fn ping(&self) -> Result<Duration> {
        let started = self.client.clock.now();
        let (driver, name) = (self.client.driver.clone(), LockName::new(PING_NAME)?);
        let ping = self.client.home.clone().ask(async move { driver.ping(&name).await });
        match tokio::time::timeout(PING_LIMIT, ping).await {
            Ok(Ok(())) => Ok(self.client.clock.now().since(started)),
            Ok(Err(error)) => Err(self.client.told("ping", error)),
            Err(_) => {
                let silent = format!("no answer within {}", shown(PING_LIMIT));
                Err(self.client.told("ping", self.client.unavailable("ping", silent)))
            }
        }
    }

    /// Whether the store is reached, as the driver has seen it last, without asking it: by the answers
    /// to renewals and other requests. A client that holds nothing and asks nothing sees an outage
    /// late; [`ping`](Self::ping) asks. A file counts as disconnected while it does not answer, and memory
    /// while a scripted fault keeps it from answering.
    pub fn connection(&self) -> ConnectionState {
        let Client { home, closed, reach, .. } = &*self.client;
        match closed.is_cancelled() || home.check().is_err() {
            true => ConnectionState::Closed,
            false => reach.now(),
        }
    }

    /// The [state of the connection](Self::connection) now, and each change from then on. Changes that
    /// follow each other faster than they are read may be left out; the last one is not. The stream ends
    /// after [`ConnectionState::Closed`], and does not keep the connection. Its `next` is that of
    /// `StreamExt`, of the crate `futures-util` or `tokio-stream`.
    ///
    /// ```no_run
    /// use futures_util::StreamExt; // futures-util = "0.3"
    ///
    /// # async fn example(locks: lock_core::Locks) {
    /// let mut states = locks.connections();
    /// while let Some(state) = states.next().await {
    ///     println!("the store of locks: {state}");
    /// }
    /// # }
    /// ```
    pub fn connections(&self) -> impl Stream<Item = ConnectionState> + Send + Unpin + use<> {
        let Client { home, closed, reach, .. } = &*self.client;
        reach.states([closed.clone(), home.ended()])
    }

    /// Ends in order: from now on nothing new is acquired, here or by a clone; the guards that there
    /// are may be used to their end, for at most `limit`; then [closes](Self::close). Answers how many
    /// guards were still there: 0 if all work was done, and otherwise those that the close has taken
    /// their locks from.
    ///
    /// Who acquires meanwhile, or waits in a queue, is told [`Error::Closed`] by
    /// [`ClosedBy::Drain`](crate::ClosedBy::Drain), and the store hears of nobody new. An
    /// [`Owner`](crate::Owner) may acquire again what it holds. An [adoption](Self::adopt) that is under
    /// way counts as a guard. A guard counts until its release is confirmed, also when it was dropped,
    /// and until it is dropped when its lock was lost; what [`at_least`](crate::Lock::at_least) keeps
    /// after that is given back by the close.
    ///
    /// A limit of zero waits for nobody.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # async fn terminated() {}
    /// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
    /// terminated().await; // SIGTERM, say
    /// let left = locks.drain(Duration::from_secs(20)).await?;
    /// if left > 0 {
    ///     println!("{left} locks were taken from work that was not done in time");
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`close`](Self::close).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes nothing; newcomers stay refused. A close that has begun goes on.
    ///
    /// # Panics
    ///
    /// If it is polled outside a tokio runtime.
    pub async fn drain(&self, limit: Duration) -> Result<usize> {
        self.client.home.check()?;
        let left = self.client.drained(limit).await;
        self.close().await.map(|()| left).map_err(|error| error.of("drain"))
    }

    /// How far the store's fencing tokens have come: what they are above, and up to which number
    /// they were handed out.
    ///
    /// # Errors
    ///
    /// What the store answers; [`Error::Unsupported`] if it keeps no such record.
    pub async fn token_floor(&self) -> Result<TokenFloor> {
        let driver = self.client.driver.clone();
        let floor = self.client.home.clone().ask(async move { driver.token_floor().await });
        floor.await.map_err(|error| self.client.told("token floor", error))
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
    /// the store answers. Where it lets some be revoked and others not, all others are ended before that
    /// is told. [`Error::Unavailable`] if there is still somebody below the floor 30 s after each was
    /// ended once. After a failure call it again: the floor may be raised, and not everybody below it
    /// ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave some that were there before; calling it again ends them.
    pub async fn raise_token_floor(&self, above: FencingToken) -> Result<TokenFloor> {
        let driver = self.client.driver.clone();
        let raise = async move { floor::raise(&*driver, above).await };
        let raised = self.client.home.clone().ask(raise).await;
        raised.map_err(|error| self.client.told("raise the token floor", error))
    }

    /// Gives back everything that this connection holds, leaves every queue and ends the session.
    /// Returns when the store has confirmed, after at most 5 s. All clones are closed with it:
    /// guards say that they are lost ([`LossReason::Closed`](crate::LossReason::Closed)), waiters and
    /// later calls are told [`Error::Closed`]. Stop the work first: the next holder may be granted at
    /// once. It is a release of each lock, and traced as one. Closing again does nothing: it waits
    /// for the first close, and answers what that came to.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if the store did not confirm in time, [`Error::Closed`] if the runtime
    /// that connected has ended; what was held is then free after its TTL.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop it.
    pub async fn close(&self) -> Result<()> {
        self.client.closed.cancel();
        let client = self.client.clone();
        let close = async move { client.close().await };
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

impl Drop for Client {
    /// Ends the streams of states, also where the driver goes on for others.
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

impl fmt::Debug for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Locks");
        debug.field("store", &self.guarantees().store);
        if let Some(servers) = &self.client.servers {
            debug.field("at", servers);
        }
        debug.finish_non_exhaustive()
    }
}
