//! The way to etcd: one member at a time, and to the next one when it fails.
//!
//! The client crate can spread requests over all members, but it keeps dead ones in rotation: with
//! one of three down, a third of all requests fails for as long as it is down. So there is one
//! client for one member here, and the choice is ours.

use std::{
    fmt,
    future::Future,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use etcd_client::{Client, ConnectOptions, KvClient, LeaseClient, WatchClient};
use lock_core::trace;
use tokio::{sync::watch, time::timeout};
use uuid::Uuid;

use crate::{
    config::EtcdConfig,
    error::{Failure, Kind, STORE},
};

/// How long a request may stay unanswered. Far above what a busy member takes, and short enough for
/// several tries within a TTL.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// How long connecting may take in all, whatever the number of members.
const CONNECT_LIMIT: Duration = Duration::from_secs(4);

/// The clients of one member. Clones share one connection.
pub(crate) struct Member {
    /// Counts the changes of member; streams of an older one are given up.
    pub(crate) generation: u64,
    index: usize,
    pub(crate) kv: KvClient,
    pub(crate) lease: LeaseClient,
    pub(crate) watch: WatchClient,
}

/// All members, and the one in use.
pub(crate) struct Connection {
    endpoints: Vec<String>,
    options: ConnectOptions,
    member: RwLock<Arc<Member>>,
    changes: watch::Sender<u64>,
    dialing: tokio::sync::Mutex<()>,
    down: AtomicBool,
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
        config: &EtcdConfig,
        probe: impl Fn(Arc<Member>) -> F,
    ) -> Result<(Self, T), Failure>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let options = options(config);
        let members = u32::try_from(config.endpoints.len()).unwrap_or(u32::MAX);
        let limit = (CONNECT_LIMIT / members).min(ANSWER_LIMIT);
        let mut failure = Failure::senseless("no endpoints");
        for (index, endpoint) in config.endpoints.iter().enumerate() {
            let attempt = async {
                let member = Arc::new(dial(endpoint, &options, index, 0).await?);
                Ok((member.clone(), probe(member).await?))
            };
            match timeout(limit, attempt).await {
                Ok(Ok((member, answer))) => {
                    let connection = Self {
                        endpoints: config.endpoints.clone(),
                        options,
                        member: RwLock::new(member),
                        changes: watch::Sender::new(0),
                        dialing: tokio::sync::Mutex::new(()),
                        down: AtomicBool::new(false),
                    };
                    return Ok((connection, answer));
                }
                Ok(Err(error)) => failure = error,
                Err(_) => failure = Failure::silent(limit),
            }
            if !failure.kind.is_passing() {
                break;
            }
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

    /// Sends a request once.
    pub(crate) async fn call<T, F>(&self, send: impl FnOnce(&Member) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        self.call_within(ANSWER_LIMIT, send).await
    }

    /// Sends a request once, with a limit of its own.
    pub(crate) async fn call_within<T, F>(
        &self,
        limit: Duration,
        send: impl FnOnce(&Member) -> F,
    ) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let member = self.member();
        let failure = match timeout(limit, send(&member)).await {
            Ok(Ok(answer)) => {
                self.works();
                return Ok(answer);
            }
            Ok(Err(error)) => Failure::from(error),
            Err(_) => Failure::silent(limit),
        };
        // Boxed here and elsewhere: what is rare must not make every request's future large.
        Box::pin(self.failed(member.generation, &failure)).await;
        Err(failure)
    }

    /// Sends an idempotent request until the answer is definite or `give_up` says so.
    pub(crate) async fn insist<T, F>(
        &self,
        give_up: impl Fn() -> bool,
        send: impl Fn(&Member) -> F,
    ) -> Insisted<T>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let mut ambiguous = false;
        let mut pause = Pause::new();
        loop {
            match self.call(&send).await {
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

    /// Something that went through the member of `generation` failed: goes on to the next member,
    /// unless somebody else has done so.
    pub(crate) async fn failed(&self, generation: u64, failure: &Failure) {
        if !failure.kind.is_passing() || failure.kind == Kind::Busy {
            return;
        }
        if !self.down.swap(true, Ordering::Relaxed) {
            trace::disconnected(STORE, failure);
        }
        // The client mends a connection that broke, but not one that is silent.
        if self.endpoints.len() > 1 || failure.kind == Kind::Silent {
            self.replace(generation).await;
        }
    }

    /// A request was answered.
    pub(crate) fn works(&self) {
        if self.down.load(Ordering::Relaxed) && self.down.swap(false, Ordering::Relaxed) {
            trace::connected(STORE);
        }
    }

    /// Puts a new connection, to the next member if there is one, into use.
    pub(crate) async fn replace(&self, generation: u64) {
        let _one_at_a_time = self.dialing.lock().await;
        let old = self.member();
        if old.generation != generation {
            return;
        }
        for step in 1..=self.endpoints.len() {
            let index = (old.index + step) % self.endpoints.len();
            let dialed = dial(&self.endpoints[index], &self.options, index, generation + 1);
            if let Ok(Ok(member)) = timeout(ANSWER_LIMIT, dialed).await {
                *self.member.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(member);
                self.changes.send_replace(generation + 1);
                return;
            }
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The options would show the password.
        f.debug_struct("Connection").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}

fn options(config: &EtcdConfig) -> ConnectOptions {
    let options = ConnectOptions::new()
        // A member without a leader ends its streams instead of being silent for ever.
        .with_require_leader(true)
        .with_connect_timeout(ANSWER_LIMIT)
        // No HTTP/2 pings: etcd drops a connection that pings more often than every 5 s. The
        // lease keep-alives find out sooner that nobody answers.
        .with_tcp_keepalive(Duration::from_secs(10));
    match &config.login {
        Some((user, password)) => options.with_user(user, password).with_auto_token_refresh(true),
        None => options,
    }
}

/// Without a login this sends nothing and cannot fail for a well-formed endpoint.
async fn dial(
    endpoint: &str,
    options: &ConnectOptions,
    index: usize,
    generation: u64,
) -> Result<Member, Failure> {
    let client = Client::connect([endpoint], Some(options.clone())).await?;
    Ok(Member {
        generation,
        index,
        kv: client.kv_client(),
        lease: client.lease_client(),
        watch: client.watch_client(),
    })
}

const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// The pauses between tries: 10 ms, doubled up to 200 ms, each between a half and the whole of that.
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
