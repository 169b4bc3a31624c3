//! Several locks at once.

use std::{collections::BTreeMap, fmt, future::Future, sync::Arc, time::Duration};

use tracing::Instrument;

use crate::{
    Attempt, Error, FencingToken, Held, HeldSet, Instant, Kind, Lease, Lock, LockGuard, LockKind,
    LockName, LossReason, Request, Result, Wait, Wish, lock::ANSWER_LIMIT, locks::Client,
    options::options, owned::Owned, run::run_while_all_held, trace, vain::DIAGNOSIS_LIMIT,
};

/// Several locks that are acquired together: all or nothing. Exclusive ones, unless
/// [`shared`](Self::shared) or [`and_shared`](Self::and_shared) says otherwise. Cheap to clone.
///
/// If all are free, and the store can, one request takes all of them
/// ([`Guarantees::names_at_once`](crate::Guarantees::names_at_once)). Otherwise they are taken one
/// after the other in the order of their names, so sets that overlap do not dead-lock, in whatever
/// order their names are given. A name that is given twice counts once.
///
/// ```no_run
/// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
/// let accounts = locks.all(["accounts/7", "accounts/3"])?.acquire().await?;
/// for (name, token) in accounts.tokens() {
///     println!("{name}: {token}");
/// }
/// accounts.release().await
/// # }
/// ```
#[derive(Clone)]
#[must_use = "locks do nothing until they are acquired"]
pub struct LockSet {
    pub(crate) lock: Lock,
    /// In the order of their names, and never empty.
    members: BTreeMap<LockName, Kind>,
    /// Whether a single name is taken as a set is, which costs more: for the properties.
    alone_too: bool,
}

impl LockSet {
    /// # Errors
    ///
    /// [`Error::InvalidName`] for an empty set or a bad name.
    pub(crate) fn new(
        client: Arc<Client>,
        names: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Self> {
        let exclusive = |name| Ok((LockName::new(name)?, Kind::Exclusive));
        let members = names.into_iter().map(exclusive).collect::<Result<BTreeMap<_, _>>>()?;
        let Some(first) = members.keys().next().cloned() else {
            let reason = "a set needs at least one name".to_owned();
            return Err(Error::InvalidName { name: String::new(), reason });
        };
        Ok(Self { lock: Lock::new(client, first, Kind::Exclusive)?, members, alone_too: false })
    }

    /// The same names as shared locks: held beside others who share them, and beside no exclusive one.
    ///
    /// ```no_run
    /// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
    /// let prices = locks.all(["prices/eur", "prices/usd"])?.shared()?.acquire().await?;
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the store has no shared locks.
    pub fn shared(mut self) -> Result<Self> {
        self.lock.client.driver.guarantees().check_kind(LockKind::Shared)?;
        self.members.values_mut().for_each(|kind| *kind = Kind::Shared);
        Ok(self)
    }

    /// Adds names as shared locks. One that is in the set already stays what it is.
    ///
    /// ```no_run
    /// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
    /// let set = locks.all(["accounts/7", "accounts/3"])?.and_shared(["rates"])?;
    /// set.acquire().await?.release().await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the store has no shared locks, [`Error::InvalidName`] for a bad name.
    pub fn and_shared(mut self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Result<Self> {
        self.lock.client.driver.guarantees().check_kind(LockKind::Shared)?;
        for name in names {
            self.members.entry(LockName::new(name)?).or_insert(Kind::Shared);
        }
        Ok(self)
    }

    /// Has a single name taken as a set is.
    #[cfg(feature = "properties")]
    pub(crate) fn alone_too(self) -> Self {
        Self { alone_too: true, ..self }
    }

    options!(|self| self.lock);

    /// Waits until it has all of the locks. Those that it has are held meanwhile, and given back if
    /// it comes to nothing.
    ///
    /// # Errors
    ///
    /// As [`Lock::acquire`]; the limit of [`wait`](Self::wait) is for all of them together.
    /// [`Error::Lost`] if one was lost while it waited for the others, or before the caller polled
    /// again.
    ///
    /// # Cancel safety
    ///
    /// As [`Lock::acquire`].
    ///
    /// # Panics
    ///
    /// As [`Lock::acquire`].
    pub fn acquire(&self) -> impl Future<Output = Result<LockSetGuard>> + Send + use<> {
        let set = self.clone();
        async move {
            set.lock.check()?;
            let work = set.clone();
            set.owned(async move {
                let started = work.lock.clock().now();
                match work.at_once_in_time().await? {
                    Step::Taken(held) => Ok(Some(held)),
                    Step::Busy | Step::Impossible => work.in_order(started).await.map(Some),
                }
            })
            .await
            // Only a try ends with nothing.
            .and_then(|held| held.ok_or_else(|| set.busy()))
            .map_err(|error| set.lock.client.told("acquire", error))
        }
    }

    /// Takes all of the locks if all are free and nobody waits for any; `None` otherwise, and then
    /// nothing is held: those that it had are given back.
    ///
    /// # Errors
    ///
    /// As [`Lock::try_acquire`]; if the names are taken one after the other, its limit is for each.
    /// [`Error::Lost`] as [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    ///
    /// As [`Lock::acquire`].
    ///
    /// # Panics
    ///
    /// As [`Lock::acquire`].
    pub fn try_acquire(&self) -> impl Future<Output = Result<Option<LockSetGuard>>> + Send + use<> {
        let set = self.clone();
        async move {
            set.lock.check()?;
            let work = set.clone();
            set.owned(async move {
                match work.lock.answer(ANSWER_LIMIT, work.at_once(), "try_acquire").await? {
                    Step::Taken(held) => Ok(Some(held)),
                    Step::Busy => Ok(None),
                    Step::Impossible => work.try_in_order().await,
                }
            })
            .await
            .map_err(|error| set.lock.client.told("try_acquire", error))
        }
    }

    /// Waits until it has all of the locks, does the work while they are held, and releases them. If one is
    /// lost, the work is dropped at its next await point and never polled again; as [`Lock::run`].
    ///
    /// ```no_run
    /// # async fn transfer(_: i64, _: i64) {}
    /// # async fn example(locks: lock_core::Locks) -> lock_core::Result<()> {
    /// let accounts = locks.all(["accounts/7", "accounts/3"])?;
    /// accounts
    ///     .run(|held| async move {
    ///         let tokens: Vec<_> = held.tokens().map(|(_, token)| token.as_i64()).collect();
    ///         transfer(tokens[0], tokens[1]).await
    ///     })
    ///     .await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`acquire`](Self::acquire), and [`Error::Lost`] if one was lost before the work was done.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the work, then releases the locks in the background.
    pub fn run<T, W, F>(&self, work: W) -> impl Future<Output = Result<T>> + use<T, W, F>
    where
        W: FnOnce(HeldSet) -> F,
        F: Future<Output = T>,
    {
        let guard = self.acquire();
        async move { run_while_all_held(guard.await?, work).await }
    }

    /// As [`run`](Self::run) with work that can fail: one `?` for its errors and the locks'.
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
        W: FnOnce(HeldSet) -> F,
        F: Future<Output = Result<T, E>>,
        E: From<Error>,
    {
        let run = self.run(work);
        async move { run.await? }
    }

    /// The whole of an acquire, which goes on while its caller does not poll: what it has of the
    /// set must not wait for the caller.
    async fn owned(
        &self,
        work: impl Future<Output = Result<Option<LockSetGuard>>> + Send + 'static,
    ) -> Result<Option<LockSetGuard>> {
        let (caller, busy) = (Attempt::of(&self.lock.client.heard), self.busy());
        let left = caller.clone();
        let work = async move {
            tokio::select! {
                biased;
                // Nobody sees it.
                () = left.cancelled() => Err(busy),
                done = work => done,
            }
        };
        let owned = || {
            let owned = Owned::new(&self.lock.client.home, work, move || caller.cancel());
            owned.collected_within(self.lock.request.ttl, |held| match held? {
                Some(held) => held.not_collected().map(|()| None),
                None => Ok(None),
            })
        };
        let held = self.lock.client.unless_drained(owned).await?;
        if let Some(held) = &held {
            held.check().map_err(|lost| self.lock.client.of_newcomer(lost))?;
            held.keep_for(self.lock.at_least);
        }
        Ok(held)
    }

    fn busy(&self) -> Error {
        Error::Contended { name: self.lock.request.name.clone() }
    }

    /// As [`at_once`](Self::at_once), within the limit of the wait. What comes in the last moment
    /// is better late than in vain.
    async fn at_once_in_time(&self) -> Result<Step> {
        match self.lock.wait {
            None => self.at_once().await,
            Some(Duration::ZERO) => self.lock.answer(ANSWER_LIMIT, self.at_once(), "acquire").await,
            Some(limit) => {
                let limit = limit.saturating_add(DIAGNOSIS_LIMIT);
                self.lock.answer(limit, self.at_once(), "acquire").await
            }
        }
    }

    /// All of the locks by one request, or none. Nothing is left behind when it is dropped.
    async fn at_once(&self) -> Result<Step> {
        let client = &self.lock.client;
        let guarantees = client.driver.guarantees();
        // A lock that is alone needs no step of its own.
        let at_once = if self.alone_too { 1 } else { 2 }..=guarantees.names_at_once;
        if !at_once.contains(&self.members.len()) {
            return Ok(Step::Impossible);
        }
        let caller = Attempt::of(&client.heard);
        let wish = |lock: Lock| {
            let mut request = lock.request;
            request.wait = Wait::Try;
            (request, caller.another())
        };
        let wishes: Vec<_> = self.each().map(wish).collect();
        let (first, attempt) = &wishes[0];
        let span = trace::attempt(&first.name, guarantees.store, attempt.id());
        let work = grant_all(client.clone(), wishes, self.lock.max_hold).instrument(span);
        Owned::new(&client.home, work, move || caller.cancel()).await
    }

    async fn in_order(&self, started: Instant) -> Result<LockSetGuard> {
        let clock = self.lock.clock();
        let mut held = LockSetGuard { guards: Vec::with_capacity(self.members.len()) };
        for mut lock in self.each() {
            if let Some(limit) = self.lock.wait.filter(|limit| !limit.is_zero()) {
                let left = (started + limit).since(clock.now());
                // Zero would ask once, however long that takes.
                lock.wait = Some(left.max(Duration::from_nanos(1)));
            }
            match held.while_valid(lock.acquire()).await? {
                Ok(guard) => held.guards.push(guard),
                // The limit was for all of them.
                Err(Error::WaitTimeout { name, holder, position, .. }) => {
                    let waited = clock.now().since(started);
                    return Err(Error::WaitTimeout { name, waited, holder, position });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(held)
    }

    async fn try_in_order(&self) -> Result<Option<LockSetGuard>> {
        let mut held = LockSetGuard { guards: Vec::with_capacity(self.members.len()) };
        for lock in self.each() {
            match lock.try_acquire().await? {
                Some(guard) => held.guards.push(guard),
                None => {
                    // "Busy" is the answer, whatever becomes of those that it had.
                    let _ = held.release().await;
                    return Ok(None);
                }
            }
        }
        Ok(Some(held))
    }

    /// Its locks, in the order of their names.
    fn each(&self) -> impl Iterator<Item = Lock> {
        self.members.iter().map(|(name, kind)| {
            let mut lock = self.lock.clone();
            (lock.request.name, lock.request.kind) = (name.clone(), *kind);
            // A part of a set is given back at once if the whole cannot be had.
            lock.at_least = Duration::ZERO;
            lock
        })
    }
}

/// What one request for all came to.
enum Step {
    Taken(LockSetGuard),
    Busy,
    /// The store takes them one after the other only.
    Impossible,
}

/// One request for all, from the wish to the guards.
async fn grant_all(
    client: Arc<Client>,
    wishes: Vec<Wish>,
    max_hold: Option<Duration>,
) -> Result<Step> {
    let started = client.clock.now();
    let answer = client.driver.try_all(wishes.clone()).await;
    if answer.is_ok() {
        client.heard.hear();
    }
    let leases = match answer {
        Ok(Some(leases)) => leases,
        Ok(None) => {
            for (Request { name, .. }, attempt) in wishes {
                trace::refused(&name, attempt.id(), &Error::Contended { name: name.clone() });
            }
            return Ok(Step::Busy);
        }
        Err(Error::Unsupported { .. }) => return Ok(Step::Impossible),
        Err(error) => {
            let refused = |(request, attempt): &Wish| {
                trace::refused(&request.name, attempt.id(), &error);
            };
            wishes.iter().for_each(refused);
            return Err(error);
        }
    };
    let now = client.clock.now();
    let cap = max_hold.map_or(Instant::NEVER, |limit| now + limit);
    let guard = |((request, attempt), lease): (Wish, Box<dyn Lease>)| {
        let Request { name, kind, ttl, term, .. } = request;
        trace::granted(&name, attempt.id(), lease.token(), now.since(started));
        LockGuard::new(Held::begin(client.clone(), name, kind, lease, ttl, term, cap))
    };
    // For a caller who has left, the guards are dropped with the answer: released at once.
    // All are made before one is asked whether it was: a lease without a guard is given back by nobody.
    let guards: Vec<_> = wishes.into_iter().zip(leases).map(guard).collect();
    Ok(Step::Taken(LockSetGuard { guards: guards.into_iter().collect::<Result<_>>()? }))
}

impl fmt::Debug for LockSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LockSet").field("members", &self.members).finish_non_exhaustive()
    }
}

/// Several locks that are held together. Dropping it releases all of them in the background, as a
/// [`LockGuard`] does.
#[must_use = "dropping the guard releases the locks"]
pub struct LockSetGuard {
    guards: Vec<LockGuard>,
}

impl LockSetGuard {
    /// Each name with its fencing token, in the order of the names.
    pub fn tokens(&self) -> impl Iterator<Item = (&LockName, FencingToken)> {
        self.guards.iter().map(|guard| (guard.name(), guard.token()))
    }

    /// One of the locks: its token, its renewal by hand, its condition for guarded writes; `None`
    /// if the name is not in the set.
    pub fn get(&self, name: impl AsRef<str>) -> Option<&Held> {
        let name = name.as_ref();
        self.guards.iter().find(|guard| guard.name().as_str() == name).map(|guard| &**guard)
    }

    /// A look at the locks that can be given away; it does not hold them.
    pub fn held(&self) -> HeldSet {
        HeldSet::new(self.guards.iter().map(LockGuard::held))
    }

    /// Whether all of the locks are still held; as [`Held::is_valid`](crate::Held::is_valid).
    pub fn is_valid(&self) -> bool {
        self.guards.iter().all(|guard| guard.is_valid())
    }

    /// How long all of them are still held if no renewal comes any more.
    pub fn remaining(&self) -> Duration {
        self.guards.iter().map(|guard| guard.remaining()).min().unwrap_or_default()
    }

    /// Waits until one of the locks is lost, and says which and how; as
    /// [`Held::lost`](crate::Held::lost).
    ///
    /// # Cancel safety
    ///
    /// Dropping the future forgets the wait and nothing else.
    pub fn lost(&self) -> impl Future<Output = (LockName, LossReason)> + Send + use<> {
        self.held().lost()
    }

    /// Releases all of the locks and waits until the store has confirmed.
    ///
    /// # Errors
    ///
    /// As [`LockGuard::release`], for the first that failed; the others are released all the same.
    ///
    /// # Cancel safety
    ///
    /// As [`LockGuard::release`].
    pub async fn release(self) -> Result<()> {
        let releases = self.guards.into_iter().map(LockGuard::release);
        futures_util::future::join_all(releases).await.into_iter().collect()
    }

    /// The guard of a set of one name.
    #[cfg(feature = "properties")]
    pub(crate) fn only(mut self) -> LockGuard {
        // A set is never empty.
        self.guards.pop().expect("a set has a name")
    }

    /// Gives back what the caller of an acquire has not collected; tells of the first.
    fn not_collected(self) -> Result<()> {
        let told = self.guards.into_iter().map(|guard| Err(guard.not_collected()));
        // Each is given back, whatever the first one says.
        told.fold(Ok(()), Result::and)
    }

    /// Keeps all of the locks for so long from when the last one was granted.
    fn keep_for(&self, time: Duration) {
        if let Some(last) = self.guards.iter().map(LockGuard::granted).max() {
            self.guards.iter().for_each(|guard| guard.keep_until(last + time));
        }
    }

    /// # Errors
    ///
    /// [`Error::Lost`] for the first that is not held any more.
    fn check(&self) -> Result<()> {
        self.guards.iter().try_for_each(|guard| guard.check())
    }

    /// Does something unless one of the locks is lost meanwhile.
    async fn while_valid<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        if self.guards.is_empty() {
            return Ok(work.await);
        }
        tokio::select! {
            biased;
            (name, reason) = self.lost() => Err(Error::Lost { name, reason }),
            done = work => Ok(done),
        }
    }
}

impl fmt::Debug for LockSetGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LockSetGuard").field(&self.guards).finish()
    }
}
