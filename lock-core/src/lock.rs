//! A lock, its options, and the ways to get it.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use tracing::Instrument;

use crate::{
    Attempt, Clock, DistributedLock, Error, Held, Instant, Kind, LockGuard, LockName, Owner,
    Request, Result, Term, Wait, deadline,
    duration::shown,
    locks::Client,
    options::options,
    owned::Owned,
    run::run_while_held,
    trace,
    vain::{DIAGNOSIS_LIMIT, Found},
};

/// How long [`Lock::try_acquire`] may take at the most.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// A lock with its options, exclusive or shared. Cheap to clone; may be acquired many times.
///
/// ```no_run
/// # use std::time::Duration;
/// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
/// let lock = locks.lock("orders/42")?.ttl(Duration::from_secs(10)).wait(Duration::from_secs(60));
/// let guard = lock.acquire().await?;
/// println!("fencing token {}", guard.token());
/// guard.release().await
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a lock does nothing until it is acquired"]
pub struct Lock {
    pub(crate) client: Arc<Client>,
    pub(crate) request: Request,
    pub(crate) wait: Option<Duration>,
    pub(crate) max_hold: Option<Duration>,
    pub(crate) at_least: Duration,
    owner: Option<Owner>,
}

impl Lock {
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the store has no such kind.
    pub(crate) fn new(client: Arc<Client>, name: LockName, kind: Kind) -> Result<Self> {
        let guarantees = client.driver.guarantees();
        guarantees.check_kind(kind.into())?;
        let mut request = Request::new(name, guarantees.default_ttl);
        request.kind = kind;
        let at_least = Duration::ZERO;
        Ok(Self { client, request, wait: None, max_hold: None, at_least, owner: None })
    }

    /// The same lock of another kind.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the store has no such kind.
    #[cfg(feature = "properties")]
    pub(crate) fn kind(mut self, kind: Kind) -> Result<Self> {
        self.client.driver.guarantees().check_kind(kind.into())?;
        self.request.kind = kind;
        Ok(self)
    }

    pub(crate) fn clock(&self) -> Clock {
        self.client.clock
    }

    options!(|self| self);

    /// Acquires as this owner, who may acquire again what it holds: see [`Owner`]. Default: nobody
    /// in particular, so every acquire waits for every other.
    pub fn owner(mut self, owner: &Owner) -> Self {
        self.owner = Some(owner.clone());
        self
    }

    /// Waits for the lock. The future borrows nothing, so it can be spawned.
    ///
    /// # Errors
    ///
    /// - [`Error::InvalidOption`] if the options do not fit the store.
    /// - [`Error::WaitTimeout`] if the limit of [`wait`](Self::wait) passed; it says who holds the
    ///   lock, for how long, and the caller's position, if the store says so within a second.
    ///   However many waits of a client end at once, the store is asked by one request at a time.
    /// - [`Error::Unavailable`] if the store could not be reached for one TTL, or answered nothing
    ///   at all until a shorter limit of [`wait`](Self::wait) had passed.
    /// - [`Error::Lost`] if the grant came while the future was not polled, and is over: see below.
    /// - [`Error::PlaceLost`] if the caller's place in the queue was revoked, deleted, or not
    ///   renewed in time.
    /// - [`Error::Unsupported`] if its [`owner`](Self::owner) holds the shared lock and asks for
    ///   the exclusive one.
    /// - [`Error::Denied`], [`Error::Rejected`], [`Error::Closed`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the queue; the place in it is lost. Whatever was under way is
    /// cleaned up in the background, also a grant that arrives too late.
    ///
    /// # Not polling
    ///
    /// A future that is kept and not polled (a `select!` with a slow branch) goes on by itself:
    /// after 50 ms it runs in a task of its own. It keeps its place in the queue, and a grant is
    /// renewed from the moment it is made. What is not collected within one TTL after the grant is
    /// given back; the next poll then returns [`Error::Lost`] with
    /// [`LossReason::NotCollected`](crate::LossReason::NotCollected). The limit of
    /// [`wait`](Self::wait) is only looked at when the future is polled.
    ///
    /// # Panics
    ///
    /// If it is polled outside a tokio runtime. Another runtime than the one that connected will
    /// do while that one lives and runs; see [`Locks`](crate::Locks#runtimes).
    pub fn acquire(&self) -> impl Future<Output = Result<LockGuard>> + Send + use<> {
        let lock = self.clone();
        async move {
            lock.check()?;
            let client = lock.client.clone();
            let granted = match lock.owner.clone() {
                None => lock.wait_alone().await,
                Some(owner) => lock.acquire_as(owner).await,
            };
            granted.map_err(|error| client.told("acquire", error))
        }
    }

    /// Takes the lock if it is free and nobody waits for it; `None` otherwise. Never waits for a
    /// holder, never overtakes a waiter, leaves nothing behind.
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), without [`Error::WaitTimeout`]. An outage is an error after
    /// at most 5 s, never `None`.
    ///
    /// # Cancel safety
    ///
    /// As [`acquire`](Self::acquire).
    pub fn try_acquire(&self) -> impl Future<Output = Result<Option<LockGuard>>> + Send + use<> {
        let lock = self.clone();
        async move {
            lock.check()?;
            let client = lock.client.clone();
            let granted = match lock.owner.clone() {
                None => lock.try_alone().await,
                Some(owner) => lock.try_acquire_as(owner).await,
            };
            granted.map_err(|error| client.told("try_acquire", error))
        }
    }

    /// Waits for the lock, does the work while it is held, and releases it afterwards. If the lock
    /// is lost, the work is dropped at its next await point and never polled again.
    ///
    /// What the work returns is returned also if the release after it fails: the work was done
    /// while the lock was held.
    ///
    /// ```no_run
    /// # async fn write(_: i64) {}
    /// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
    /// locks.lock("report")?.run(|held| async move { write(held.token().as_i64()).await }).await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and [`Error::Lost`] if the lock was lost before the work
    /// was done.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work, then releases the lock in the background.
    pub fn run<T, W, F>(&self, work: W) -> impl Future<Output = Result<T>> + use<T, W, F>
    where
        W: FnOnce(Held) -> F,
        F: Future<Output = T>,
    {
        let guard = self.acquire();
        async move { run_while_held(guard.await?, work).await }
    }

    /// As [`run`](Self::run) with work that can fail: one `?` for its errors and the lock's. Where its
    /// result goes through a `?`, nothing else tells the type of the error, and the work names it:
    ///
    /// ```no_run
    /// # async fn save(_: i64) -> std::io::Result<()> { Ok(()) }
    /// # async fn example(locks: lock_core::Locks) -> Result<(), Box<dyn std::error::Error>> {
    /// let lock = locks.lock("report")?;
    /// lock.try_run(|held| async move {
    ///     save(held.token().as_i64()).await?;
    ///     Ok::<_, Box<dyn std::error::Error>>(())
    /// })
    /// .await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// The work's, and those of [`run`](Self::run).
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    pub fn try_run<T, E, W, F>(
        &self,
        work: W,
    ) -> impl Future<Output = Result<T, E>> + use<T, E, W, F>
    where
        W: FnOnce(Held) -> F,
        F: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        let run = self.run(work);
        async move { run.await? }
    }

    /// [`acquire`](Self::acquire) for nobody in particular.
    pub(crate) async fn wait_alone(&self) -> Result<LockGuard> {
        match self.wait {
            None => self.attempt(Wait::Queue, self.new_attempt()).await,
            Some(Duration::ZERO) => self.at_once().await,
            Some(limit) => self.within(limit).await,
        }
    }

    /// [`try_acquire`](Self::try_acquire) for nobody in particular.
    pub(crate) async fn try_alone(&self) -> Result<Option<LockGuard>> {
        let attempt = self.attempt(Wait::Try, self.new_attempt());
        match self.answer(ANSWER_LIMIT, attempt, "try_acquire").await {
            Ok(guard) => Ok(Some(guard)),
            Err(Error::Contended { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// # Errors
    ///
    /// [`Error::InvalidOption`] for the first option that does not fit, [`Error::Closed`] if the
    /// client's runtime has ended.
    pub(crate) fn check(&self) -> Result<()> {
        self.client.home.check()?;
        let Request { ttl, term, .. } = self.request;
        self.client.driver.guarantees().check_ttl(ttl)?;
        if self.max_hold.is_some_and(|limit| limit.is_zero()) {
            return Err(invalid("max_hold", Duration::ZERO, "more than nothing".to_owned()));
        }
        let margin = deadline::margin(ttl);
        let term = (term == Term::Fixed).then(|| ttl.saturating_sub(margin));
        let end = self.max_hold.into_iter().chain(term).min().unwrap_or(Duration::MAX);
        let most = end.saturating_sub(margin);
        match self.at_least > most {
            true => {
                let allowed =
                    format!("up to {}, as the hold ends after {}", shown(most), shown(end));
                Err(invalid("at_least", self.at_least, allowed))
            }
            false => Ok(()),
        }
    }

    fn new_attempt(&self) -> Attempt {
        Attempt::of(&self.client.heard)
    }

    /// One attempt, from the wish to the guard, owned so that dropping it is safe anywhere.
    async fn attempt(&self, wait: Wait, attempt: Attempt) -> Result<LockGuard> {
        let mut request = self.request.clone();
        request.wait = wait;
        let store = self.client.driver.guarantees().store;
        let span = trace::attempt(&request.name, store, attempt.id());
        let work = grant(self.client.clone(), request, attempt.clone(), self.max_hold);
        let ttl = self.request.ttl;
        let owned = || {
            Owned::new(&self.client.home, work.instrument(span), move || attempt.cancel())
                .collected_within(ttl, |granted| Err(granted?.not_collected()))
        };
        let guard = self.client.unless_drained(owned).await?;
        // Lost since it was granted, while the caller did not poll.
        guard.check().map_err(|lost| self.client.of_newcomer(lost))?;
        // Not before the caller has it: what comes too late for one that has left is given back at once.
        if !self.at_least.is_zero() {
            guard.keep_until(guard.granted() + self.at_least);
        }
        Ok(guard)
    }

    async fn at_once(&self) -> Result<LockGuard> {
        let attempt = self.new_attempt();
        let (id, started) = (attempt.id(), self.client.clock.now());
        match tokio::time::timeout(ANSWER_LIMIT, self.attempt(Wait::Try, attempt)).await {
            Ok(Err(Error::Contended { .. })) => {
                let found = self.client.in_the_way(&self.request.name, id).await;
                Err(self.in_vain(Duration::ZERO, found.unwrap_or_default()))
            }
            Ok(answer) => answer,
            // Slow, but there: others' answers have come meanwhile.
            Err(_) if self.client.heard.since(started) => {
                Err(self.in_vain(ANSWER_LIMIT, Found::default()))
            }
            Err(_) => Err(self.unanswered(ANSWER_LIMIT, "acquire")),
        }
    }

    async fn within(&self, limit: Duration) -> Result<LockGuard> {
        let started = self.client.clock.now();
        let attempt = self.new_attempt();
        let granted = self.attempt(Wait::Queue, attempt.clone());
        tokio::pin!(granted);
        if let Ok(answer) = tokio::time::timeout(limit, &mut granted).await {
            return answer;
        }
        let waited = self.client.clock.now().since(started);
        let found = tokio::select! {
            biased;
            // Granted in the last moment: better late than in vain.
            answer = &mut granted => return answer,
            found = self.client.in_the_way(&self.request.name, attempt.id()) => found,
        };
        match found {
            // Granted already, the store says; its word to us is on the way.
            Some(Found { place: Some(0), .. }) => {
                let nothing = Err(self.in_vain(waited, Found::default()));
                tokio::time::timeout(DIAGNOSIS_LIMIT, granted).await.unwrap_or(nothing)
            }
            Some(found) => Err(self.in_vain_or_refused(waited, found, &attempt)),
            // Slow, but there: others' answers have come meanwhile, or its own that it waits.
            None if self.client.heard.since(started) => Err(self.in_vain(waited, Found::default())),
            None => Err(self.unanswered(limit.saturating_add(DIAGNOSIS_LIMIT), "acquire")),
        }
    }

    /// Where the store shows nobody and took no request, that is an outage and not a busy lock.
    fn in_vain_or_refused(&self, waited: Duration, found: Found, attempt: &Attempt) -> Error {
        match (&found, attempt.refusal().take()) {
            (Found { holder: None, place: None }, Some(why)) => {
                self.client.unavailable("acquire", why)
            }
            _ => self.in_vain(waited, found),
        }
    }

    pub(crate) fn in_vain(&self, waited: Duration, found: Found) -> Error {
        Error::WaitTimeout {
            name: self.request.name.clone(),
            waited,
            holder: found.holder.map(Box::new),
            position: found.place,
        }
    }

    pub(crate) async fn answer<T>(
        &self,
        limit: Duration,
        call: impl Future<Output = Result<T>>,
        op: &'static str,
    ) -> Result<T> {
        let answer = tokio::time::timeout(limit, call).await;
        answer.unwrap_or_else(|_| Err(self.unanswered(limit, op)))
    }

    fn unanswered(&self, limit: Duration, op: &'static str) -> Error {
        self.client.unavailable(op, format!("no answer within {}", shown(limit)))
    }
}

fn invalid(option: &str, value: Duration, allowed: String) -> Error {
    Error::InvalidOption { option: option.to_owned(), value: shown(value).to_string(), allowed }
}

async fn grant(
    client: Arc<Client>,
    request: Request,
    attempt: Attempt,
    max_hold: Option<Duration>,
) -> Result<LockGuard> {
    let started = client.clock.now();
    let (name, kind) = (request.name.clone(), request.kind);
    let (ttl, term) = (request.ttl, request.term);
    let answer = client.driver.acquire(request, attempt.clone()).await;
    // A cancelled attempt ends without the store's word.
    if !attempt.is_cancelled() && matches!(answer, Ok(_) | Err(Error::Contended { .. })) {
        client.heard.hear();
    }
    match answer {
        Ok(lease) => {
            let now = client.clock.now();
            trace::granted(&name, attempt.id(), lease.token(), now.since(started));
            let cap = max_hold.map_or(Instant::NEVER, |limit| now + limit);
            // For a caller who has left, the guard is dropped with the answer: released at once.
            LockGuard::new(Held::begin(client, name, kind, lease, ttl, term, cap))
        }
        Err(error) => {
            trace::refused(&name, attempt.id(), &error);
            Err(error)
        }
    }
}

impl fmt::Debug for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock")
            .field("request", &self.request)
            .field("wait", &self.wait)
            .field("max_hold", &self.max_hold)
            .field("at_least", &self.at_least)
            .finish_non_exhaustive()
    }
}
