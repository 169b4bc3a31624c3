//! The way to etcd: one member at a time, and to the next one when it fails.
//!
//! The client crate can spread requests over all members, but it keeps dead ones in rotation: with
//! one of three down, a third of all requests fails for as long as it is down. So there is one
//! client for one member here, and the choice is ours; unless the caller has given a client of its own.

use std::{
    fmt,
    future::Future,
    sync::{
        Arc, Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use etcd_client::{ClusterClient, KvClient, LeaseClient, MaintenanceClient, WatchClient};
use lock_core::{Attempt, Clock, Instant, Reach, Wait, trace};
use tokio::{sync::watch, time::timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    error::{Failure, Kind, STORE},
    wire::{
        dial::Source,
        endpoints::Endpoints,
        turns::{Turn, Turns, unsent},
    },
};

/// How long a request may stay unanswered. Far above what a busy member takes, and short enough for
/// several tries within a TTL.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// How long connecting may take in all, whatever the number of members.
const CONNECT_LIMIT: Duration = Duration::from_secs(4);

/// How long after a login for refused watches there is no other one.
pub(crate) const WATCH_LOGINS: Duration = Duration::from_secs(1);

/// The clients of one member. Clones share one connection.
pub(crate) struct Member {
    /// Counts the changes of member; streams of an older one are given up.
    pub(crate) generation: u64,
    pub(crate) endpoint: Arc<str>,
    pub(crate) kv: KvClient,
    pub(crate) lease: LeaseClient,
    pub(crate) watch: WatchClient,
    pub(crate) cluster: ClusterClient,
    pub(crate) maintenance: MaintenanceClient,
}

/// All members, and the one in use.
pub(crate) struct Connection {
    endpoints: Endpoints,
    source: Source,
    member: RwLock<Arc<Member>>,
    changes: watch::Sender<u64>,
    dialing: tokio::sync::Mutex<()>,
    /// When a new login was last asked for because a watch was refused.
    watch_login: tokio::sync::Mutex<Option<Instant>>,
    /// How many rounds of dialing there were.
    dialed: AtomicU64,
    down: AtomicBool,
    pub(crate) reach: Reach,
    /// When a request was answered last that no member answers without a leader.
    heard: Mutex<Instant>,
    /// The member may crash at a read-only transaction.
    reads_alone: AtomicBool,
    /// Cancelled when the client is closed: nothing is tried again.
    closed: CancellationToken,
    pub(crate) turns: Turns,
}

/// Whose word an answer is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Word {
    /// A member without a leader does not give it.
    Leader,
    /// The member at hand gives it alone, also when it is cut off from all others.
    Member,
}

/// What an idempotent request came to after some tries.
pub(crate) struct Insisted<T> {
    pub(crate) result: Result<T, Failure>,
    /// Some sending of it was not answered and may be carried out even now.
    pub(crate) ambiguous: bool,
}

impl Connection {
    /// Connects to the first member that answers `probe`.
    ///
    /// # Errors
    ///
    /// What the last member answered, or the first one that refused the login.
    pub(crate) async fn open<T, F>(
        source: Source,
        probe: impl Fn(Arc<Member>) -> F,
    ) -> Result<(Self, T), Failure>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let endpoints = Endpoints::shuffled(&source.endpoints());
        let to_try = endpoints.to_try();
        let limit = limit_of_each(to_try.len());
        let mut failure = Failure::senseless("no endpoints");
        for endpoint in to_try {
            let attempt = async {
                let member = Arc::new(source.dial(&endpoint, 0, true).await?);
                Ok((member.clone(), probe(member).await?))
            };
            match timeout(limit, attempt).await {
                Ok(Ok((member, answer))) => {
                    let connection = Self {
                        endpoints,
                        source,
                        member: RwLock::new(member),
                        changes: watch::Sender::new(0),
                        dialing: tokio::sync::Mutex::new(()),
                        watch_login: tokio::sync::Mutex::new(None),
                        dialed: AtomicU64::new(0),
                        down: AtomicBool::new(false),
                        reach: Reach::default(),
                        heard: Mutex::new(Clock::Boot.now()),
                        reads_alone: AtomicBool::new(false),
                        closed: CancellationToken::new(),
                        turns: Turns::new(),
                    };
                    return Ok((connection, answer));
                }
                Ok(Err(error)) => failure = error,
                Err(_) => failure = Failure::silent(limit),
            }
            if !failure.kind.is_passing() {
                break;
            }
            endpoints.failed(&endpoint);
        }
        Err(failure)
    }

    /// The member in use.
    pub(crate) fn member(&self) -> Arc<Member> {
        // Nothing panics while it holds this lock.
        self.member.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Tells when another member, or another connection to the same, is in use.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Waits for the turn of an acquire, or of a try.
    ///
    /// # Errors
    ///
    /// As [`Turns::acquire`].
    pub(crate) async fn turn(
        &self,
        wait: Wait,
        attempt: &Attempt,
        until: impl Fn() -> Instant,
    ) -> Result<Option<Turn<'_>>, Failure> {
        self.turns.acquire(wait, attempt, until).await
    }

    /// How long a caller goes on that asked at `asked`: until nothing was heard of the store for a TTL.
    pub(crate) fn patience(&self, asked: Instant, ttl: Duration) -> Instant {
        asked.max(self.heard()) + ttl
    }

    /// When a request was answered last that no member answers without a leader.
    pub(crate) fn heard(&self) -> Instant {
        // Nothing panics while it holds this lock.
        *self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request once that needs the leader.
    pub(crate) async fn call<T, F>(&self, send: impl FnOnce(&Member) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let room = match self.turns.try_request() {
            None => Box::pin(self.turns.request()).await,
            room => room,
        };
        self.send(Word::Leader, room, send).await
    }

    /// Sends a request once that only looks, when its turn has come.
    pub(crate) async fn look<T, F>(
        &self,
        word: Word,
        send: impl FnOnce(&Member) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let _turn = self.turns.look().await;
        let room = self.turns.request().await;
        self.send(word, room, send).await
    }

    async fn send<T, F>(
        &self,
        word: Word,
        room: Option<Turn<'_>>,
        send: impl FnOnce(&Member) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let member = self.member();
        let answer = timeout(ANSWER_LIMIT, send(&member)).await;
        drop(room);
        let failure = match answer {
            Ok(Ok(answer)) => {
                self.works(word);
                return Ok(answer);
            }
            // The caller's client need not log in again by itself.
            Ok(Err(error)) if self.source.is_shared() => Failure::of_stream(error),
            Ok(Err(error)) => Failure::from(error),
            Err(_) => Failure::silent(ANSWER_LIMIT),
        };
        // Boxed here and elsewhere: what is rare must not make every request's future large. What
        // the login came to is told by the request that is sent next.
        drop(Box::pin(self.failed(member.generation, &failure)).await);
        Err(failure)
    }

    /// Sends an idempotent request that needs the leader until the answer is definite or `give_up`
    /// says so.
    pub(crate) async fn insist<T, F>(
        &self,
        give_up: impl Fn() -> bool,
        send: impl Fn(&Member) -> F,
    ) -> Insisted<T>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let give_up = || give_up() || self.closed.is_cancelled();
        let mut ambiguous = false;
        let mut pause = Pause::new();
        loop {
            let room = match self.turns.try_request() {
                None => {
                    let room = Box::pin(self.turns.request()).await;
                    if give_up() {
                        let result = Err(unsent("it waited for others until it was too late"));
                        return Insisted { result, ambiguous };
                    }
                    room
                }
                room => room,
            };
            match self.send(Word::Leader, room, &send).await {
                Err(failure) if failure.kind.is_passing() => {
                    ambiguous |= failure.kind.is_ambiguous();
                    if give_up() {
                        return Insisted { result: Err(failure), ambiguous };
                    }
                }
                result => {
                    let unclear = |failure: &Failure| failure.kind.is_ambiguous();
                    ambiguous |= result.as_ref().is_err_and(unclear);
                    return Insisted { result, ambiguous };
                }
            }
            Box::pin(pause.wait()).await;
        }
    }

    /// The servers may crash at a read-only transaction: none is sent from now on.
    pub(crate) fn set_reads_alone(&self) {
        self.reads_alone.store(true, Ordering::Relaxed);
    }

    pub(crate) fn reads_alone(&self) -> bool {
        self.reads_alone.load(Ordering::Relaxed)
    }

    /// Nothing is tried again from now on.
    pub(crate) fn close(&self) {
        self.closed.cancel();
    }

    /// Something that went through the member of `generation` failed: goes on to the next member,
    /// or logs in again, unless that has been done since.
    ///
    /// # Errors
    ///
    /// Why a new login was needed and refused.
    pub(crate) async fn failed(&self, generation: u64, failure: &Failure) -> Result<(), Failure> {
        tokio::select! {
            biased;
            () = self.closed.cancelled() => Ok(()),
            mended = self.mend(generation, failure) => mended,
        }
    }

    async fn mend(&self, generation: u64, failure: &Failure) -> Result<(), Failure> {
        if failure.kind == Kind::LoggedOut {
            return self.replace(generation, true).await;
        }
        if !failure.kind.is_passing() || failure.kind == Kind::Busy {
            return Ok(());
        }
        if !self.down.swap(true, Ordering::Relaxed) {
            trace::disconnected(STORE, failure);
            self.reach.broke(failure);
        }
        // The client mends a connection that broke, but not one that is silent.
        if !self.endpoints.is_one() || failure.kind == Kind::Silent {
            return self.replace(generation, false).await;
        }
        Ok(())
    }

    /// A watch was refused through the member of `generation`, and what it is for may be read: logs in
    /// again, unless that was done since, or a moment ago for another one.
    ///
    /// # Errors
    ///
    /// Why the login was refused.
    pub(crate) async fn log_in_to_watch(&self, generation: u64) -> Result<(), Failure> {
        let mut last = self.watch_login.lock().await;
        let now = Clock::Boot.now();
        if self.member().generation != generation
            || last.is_some_and(|last| now < last + WATCH_LOGINS)
        {
            return Ok(());
        }
        *last = Some(now);
        self.failed(generation, &Failure::new(Kind::LoggedOut, "a watch was refused")).await
    }

    /// A request was answered.
    pub(crate) fn works(&self, word: Word) {
        if word == Word::Leader {
            *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Clock::Boot.now();
        }
        if self.down.load(Ordering::Relaxed) && self.down.swap(false, Ordering::Relaxed) {
            trace::connected(STORE);
            self.reach.works();
        }
    }

    /// Puts a new connection into use: to the `same` member, or to another if there is one. What
    /// waits for a round of dialing shares what it comes to.
    ///
    /// # Errors
    ///
    /// Why a member refused the login.
    async fn replace(&self, generation: u64, same: bool) -> Result<(), Failure> {
        let dialed = self.dialed.load(Ordering::Acquire);
        let _one_at_a_time = self.dialing.lock().await;
        let old = self.member();
        if old.generation != generation || self.dialed.load(Ordering::Acquire) != dialed {
            return Ok(());
        }
        let dialed = self.dial_round(&old, same).await;
        self.dialed.fetch_add(1, Ordering::AcqRel);
        if let Some(member) = dialed? {
            *self.member.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(member);
            self.changes.send_replace(generation + 1);
        }
        Ok(())
    }

    /// Dials each member once, until one takes the login.
    async fn dial_round(&self, old: &Member, same: bool) -> Result<Option<Member>, Failure> {
        if !same {
            self.endpoints.failed(&old.endpoint);
        }
        let mut to_try = self.endpoints.to_try();
        if same {
            to_try.insert(0, old.endpoint.clone());
        }
        let limit = limit_of_each(to_try.len());
        let mut denied = Ok(None);
        for endpoint in to_try {
            match timeout(limit, self.source.dial(&endpoint, old.generation + 1, same)).await {
                Ok(Ok(member)) => return Ok(Some(member)),
                Ok(Err(failure)) if failure.kind == Kind::Denied => denied = Err(failure),
                _ => {}
            }
            self.endpoints.failed(&endpoint);
        }
        denied
    }
}

/// How long one member of several may take to answer, so that all of them are tried in time.
fn limit_of_each(members: usize) -> Duration {
    let members = u32::try_from(members.max(1)).unwrap_or(u32::MAX);
    (CONNECT_LIMIT / members).min(ANSWER_LIMIT)
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The options would show the password.
        f.debug_struct("Connection").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// The pauses between tries: 10 ms, doubled up to 200 ms, each between a half and the whole of
/// that.
pub(crate) struct Pause(Duration);

impl Pause {
    pub(crate) fn new() -> Self {
        Self(Duration::from_millis(10))
    }

    /// The longest pause, for what somebody else mends.
    pub(crate) fn longest() -> Self {
        Self(LONGEST_PAUSE)
    }

    /// Waits, and will wait longer next time.
    pub(crate) async fn wait(&mut self) {
        let half = self.0 / 2;
        // A UUID is the random number at hand.
        let dice = u32::from(Uuid::new_v4().as_bytes()[0]);
        tokio::time::sleep(half + half * dice / 255).await;
        self.0 = (self.0 * 2).min(LONGEST_PAUSE);
    }
}
