//! From a URL to [`Locks`].

use std::{fmt, future::IntoFuture, panic::Location, sync::Arc, time::Duration};

use crate::{
    BoxFuture, Clock, DistributedLock, Effect, Error, Locks, Requirement, Result, StoreUrl,
    deadline::jitter,
    driver::{duration::shown, trace},
    keep::{
        backoff::Backoff,
        errors::{invalid, unavailable},
    },
};

/// The pause between tries.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2));

/// The longest time for an explanation.
const EXPLAIN_LIMIT: Duration = Duration::from_secs(3);

/// Half of the shortest limit in a connect: time that tokio's clock has skipped, less than this, has
/// ended none.
const SKIPPED: Duration = Duration::from_millis(500);
const PAUSED: &str = "the clock of tokio is paused here (tokio::time::pause), so limits end before an \
                      answer comes";

/// What the facade knows of drivers and servers; lock-core does not.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Opener {
    /// Opens the driver for a URL.
    pub open: fn(StoreUrl) -> Opening,
    /// The port of a store's servers if a URL of this scheme names none, so that errors can name
    /// the server's whole address. `None` for a store without servers.
    pub default_port: fn(&str) -> Option<u16>,
    /// Says within a limit what answers at a URL whose connect has failed, if it is known.
    pub explain: fn(StoreUrl, Duration) -> BoxFuture<'static, Option<String>>,
}

/// A driver that is being connected.
#[doc(hidden)]
pub type Opening = BoxFuture<'static, Result<Arc<dyn DistributedLock>>>;

/// A connection to be made: await it. Each clone makes a connection of its own.
///
/// ```no_run
/// # mod distlock { pub use lock_core::*; pub fn connect(_: &str) -> Connect { unreachable!() } }
/// use distlock::Requirement;
///
/// # async fn example() -> distlock::Result<()> {
/// let locks = distlock::connect("etcd://127.0.0.1:2379")
///     .require(Requirement::StrictFencing)
///     .require(Requirement::Fifo)
///     .await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[must_use = "nothing is connected until it is awaited"]
pub struct Connect {
    url: String,
    required: Vec<Requirement>,
    opener: Opener,
    timeout: Option<Duration>,
    retry: Duration,
    caller: &'static Location<'static>,
}

impl Connect {
    /// A connection to `url` by `opener`, with no requirements.
    #[doc(hidden)]
    #[track_caller]
    pub fn new(url: impl Into<String>, opener: Opener) -> Self {
        let (url, required, caller) = (url.into(), Vec::new(), Location::caller());
        Self { url, required, opener, timeout: None, retry: Duration::ZERO, caller }
    }

    /// The limit for one try; must be above zero. A try ends by itself within 5 s, so a longer
    /// limit has no effect: use [`retry`](Self::retry) to wait for a store. Default: 5 s.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit);
        self
    }

    /// Tries again while the store is [unavailable](Error::Unavailable), for this time: a program
    /// that starts together with its store need not fail. `Duration::MAX` means for ever. Each
    /// pause between two tries is between half and all of 100 ms, 200 ms and so on up to 2 s, at
    /// random. A failed try that is followed by another one emits the event `connect_failed` of
    /// [`trace`](crate::trace). The last try begins when the time is over, and may take its whole
    /// [`timeout`](Self::timeout). A bad URL, a wrong password, a missing database or directory,
    /// or an unmet requirement is an error at once. Default: zero, one try.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # mod distlock { pub use lock_core::*; pub fn connect(_: &str) -> Connect { unreachable!() } }
    /// # async fn example() -> distlock::Result<()> {
    /// let locks = distlock::connect("redis://127.0.0.1").retry(Duration::from_secs(60)).await?;
    /// # Ok(()) }
    /// ```
    pub fn retry(mut self, time: Duration) -> Self {
        self.retry = time;
        self
    }

    /// Refuses a store that does not promise this. May be called several times; the error names
    /// everything that is missing.
    pub fn require(mut self, requirement: Requirement) -> Self {
        self.required.push(requirement);
        self
    }
}

impl IntoFuture for Connect {
    type Output = Result<Locks>;
    type IntoFuture = BoxFuture<'static, Result<Locks>>;

    /// # Errors
    ///
    /// [`Error::InvalidUrl`](crate::Error::InvalidUrl),
    /// [`Error::InvalidOption`](crate::Error::InvalidOption),
    /// [`Error::Unavailable`](crate::Error::Unavailable) (within 5 s after the last try began),
    /// [`Error::Denied`](crate::Error::Denied),
    /// [`Error::Misconfigured`](crate::Error::Misconfigured),
    /// [`Error::Unmet`](crate::Error::Unmet).
    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let url = StoreUrl::parse(&self.url)?;
            if self.timeout.is_some_and(|limit| limit.is_zero()) {
                return Err(invalid("timeout", shown(Duration::ZERO), "more than nothing"));
            }
            let port = (self.opener.default_port)(url.scheme());
            let servers = port.map(|port| url.hosts(port).join(", "));
            let driver = self.insist(&url, servers.as_deref()).await?;
            driver.guarantees().require(&self.required)?;
            Ok(Locks::connected(driver, self.caller, servers))
        })
    }
}

impl Connect {
    /// Tries until it is connected, or there is no time for one more try. The last error has an
    /// explanation.
    async fn insist(
        &self,
        url: &StoreUrl,
        servers: Option<&str>,
    ) -> Result<Arc<dyn DistributedLock>> {
        let until = Clock::Tokio.now() + self.retry;
        let mut pause = BACKOFF;
        loop {
            // In this order tokio's clock is never ahead, unless it is paused and skips limits.
            let (began, told) = (Clock::Boot.now(), Clock::Tokio.now());
            let opened = self.once(url.clone()).await;
            let error = match opened.map_err(|error| error.of("connect").at(servers)) {
                Ok(driver) => return Ok(driver),
                Err(error) => error,
            };
            let left = until.since(Clock::Tokio.now());
            if left.is_zero() || !error.is_unavailable() {
                let took = Clock::Tokio.now().since(told);
                // Other errors are answers.
                let skipped = took.saturating_sub(Clock::Boot.now().since(began));
                let limit = self.timeout.map_or(SKIPPED, |limit| SKIPPED.min(limit / 2));
                if error.is_unavailable() && skipped > limit {
                    return Err(error.hinted(PAUSED.to_owned()));
                }
                return Err(self.explained(url, error, took).await);
            }
            // The last try begins when the time is over.
            let next = jitter(pause.take()).min(left);
            trace::connect_failed(&error, next);
            tokio::time::sleep(next).await;
        }
    }

    /// Adds what answers there to an error that may come from another server.
    async fn explained(&self, url: &StoreUrl, error: Error, took: Duration) -> Error {
        if !matches!(error, Error::Unavailable { .. } | Error::Rejected { .. }) {
            return error;
        }
        // The whole try ends within its limit, and within 5 s.
        let whole = self.timeout.unwrap_or(Duration::MAX).min(Duration::from_millis(4900));
        let limit = EXPLAIN_LIMIT.min(whole.saturating_sub(took));
        match (self.opener.explain)(url.clone(), limit).await {
            Some(hint) => error.hinted(hint),
            None => error,
        }
    }

    async fn once(&self, url: StoreUrl) -> Result<Arc<dyn DistributedLock>> {
        let Some(limit) = self.timeout else { return (self.opener.open)(url).await };
        let told = url.to_string();
        let unanswered = |_| {
            let silent = format!("no answer from {told} within {}", shown(limit));
            Err(unavailable("the store", "connect", Effect::None, silent))
        };
        tokio::time::timeout(limit, (self.opener.open)(url)).await.unwrap_or_else(unanswered)
    }
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Connect");
        if let Ok(url) = StoreUrl::parse(&self.url) {
            debug.field("url", &url);
        }
        debug.field("required", &self.required).field("timeout", &self.timeout);
        debug.field("retry", &self.retry).finish_non_exhaustive()
    }
}
