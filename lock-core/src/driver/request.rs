//! The requests that a driver gets.

use std::{
    fmt,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{Clock, Instant, LockName, driver::trace, keep::poison::lock, kind::Kind};

/// A request for one lock, as a driver gets it. lock-core has checked the TTL against the driver's
/// [`Guarantees::ttl`](crate::Guarantees::ttl).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The lock's name.
    pub name: LockName,
    /// The kind of the lock.
    pub kind: Kind,
    /// How long the grant outlives its last renewal.
    pub ttl: Duration,
    /// Whether the driver renews the grant.
    pub term: Term,
    /// Whether to queue up.
    pub wait: Wait,
    /// The value of a leader; `None` for a lock.
    pub value: Option<Arc<[u8]>>,
    /// The holder's description, for people.
    pub holder: Arc<str>,
    /// Whether the name is a label of its metrics.
    #[cfg(feature = "metrics")]
    pub(crate) named: bool,
}

impl Request {
    /// A request with the defaults: exclusive, renewed, waiting. The holder is described by program,
    /// process id and host.
    pub fn new(name: LockName, ttl: Duration) -> Self {
        Self {
            name,
            kind: Kind::Exclusive,
            ttl,
            term: Term::Renewed,
            wait: Wait::Queue,
            value: None,
            holder: this_process(),
            #[cfg(feature = "metrics")]
            named: false,
        }
    }
}

/// One of several locks that are wanted together: the request, and its attempt.
pub type Wish = (Request, Attempt);

/// Whether a grant is renewed.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Term {
    /// The driver renews it until it is released.
    Renewed,
    /// It ends one TTL after the grant, or after the last renewal by hand.
    Fixed,
}

/// Whether to queue up for a lock that is taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Wait {
    /// Return [`Error::Contended`](crate::Error::Contended) at once, leave nothing behind, overtake
    /// and disturb no waiter.
    Try,
    /// Queue up and wait until it is granted or the attempt is cancelled.
    Queue,
}

/// One attempt to get a lock: its identity, and whether the caller still wants it.
///
/// The identity belongs to the attempt, never to a thread, a connection or a session: a request
/// that an attempt sends twice takes effect once, and an attempt releases only its own entry.
#[derive(Clone, Debug)]
pub struct Attempt {
    id: Uuid,
    cancel: CancellationToken,
    heard: Arc<Heard>,
    told: Arc<Mutex<Told>>,
}

/// What the caller's clone of an attempt has to know.
#[derive(Debug, Default)]
struct Told {
    /// The latest reason why the store has not taken the request yet.
    refusal: Option<String>,
    /// Whether the last try has failed by an outage, and no later one waits.
    outage: bool,
    /// The identity since the attempt began anew, if it has.
    id: Option<Uuid>,
}

impl Attempt {
    /// A new attempt with an identity of its own.
    #[allow(clippy::new_without_default, reason = "two attempts are never alike")]
    pub fn new() -> Self {
        Self::of(&Arc::new(Heard::new(Clock::Boot)))
    }

    /// A new attempt of a client.
    pub(crate) fn of(heard: &Arc<Heard>) -> Self {
        let (cancel, heard) = (CancellationToken::new(), heard.clone());
        Self { id: Uuid::new_v4(), cancel, heard, told: Arc::default() }
    }

    /// Another attempt of the same caller: cancelling one cancels both.
    #[doc(hidden)]
    #[must_use]
    pub fn another(&self) -> Self {
        Self { id: Uuid::new_v4(), ..self.clone() }
    }

    /// Begins anew, as [another](Self::another) attempt.
    pub(crate) fn begin_anew(&mut self) {
        *self = self.another();
        lock(&self.told).id = Some(self.id);
    }

    /// The attempt's identity.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// The present identity: another one if a clone of the attempt has begun anew.
    pub(crate) fn present_id(&self) -> Uuid {
        lock(&self.told).id.unwrap_or(self.id)
    }

    /// For drivers: the store has answered that the attempt waits for `name`, with `place - 1`
    /// waiters before it; `None` if the store keeps no order, or the place is not known yet. A wait
    /// is not an outage, even if the store is slow.
    pub fn queued(&self, name: &LockName, place: Option<usize>) {
        self.heard.hear();
        {
            let mut told = lock(&self.told);
            (told.refusal, told.outage) = (None, false);
        }
        if let Some(place) = place {
            trace::queued(name, self.id, place);
        }
    }

    /// For drivers: the store has refused the attempt's request for a passing reason, such as a
    /// locked file, and the driver will ask again. If the wait ends before the store takes the
    /// request, the error is [`Error::Unavailable`](crate::Error::Unavailable) with this reason,
    /// unless others hold the lock.
    pub fn put_off(&self, why: &dyn fmt::Display) {
        lock(&self.told).refusal = Some(why.to_string());
    }

    /// The store was out of reach for this reason, and the wait goes on.
    pub(crate) fn outlasts(&self, why: &dyn fmt::Display) {
        self.put_off(why);
        lock(&self.told).outage = true;
    }

    /// Whether the store was out of reach when it was last tried.
    pub(crate) fn is_in_outage(&self) -> bool {
        lock(&self.told).outage
    }

    /// The latest reason why the store has not taken the request yet.
    pub(crate) fn take_refusal(&self) -> Option<String> {
        lock(&self.told).refusal.take()
    }

    /// Notifies the driver that the caller does not wait any more.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Whether the caller has left.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Waits until the caller has left.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the wait and nothing else.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }
}

/// When a store last answered a client, as far as lock-core sees the answers.
#[derive(Debug)]
pub(crate) struct Heard {
    clock: Clock,
    last: AtomicU64,
}

impl Heard {
    /// No answer yet.
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, last: AtomicU64::new(Instant::default().nanos()) }
    }

    /// Records an answer of the store.
    pub(crate) fn hear(&self) {
        self.last.fetch_max(self.clock.now().nanos(), Ordering::AcqRel);
    }

    /// Whether the store has answered since `then`.
    pub(crate) fn since(&self, then: Instant) -> bool {
        self.last.load(Ordering::Acquire) >= then.nanos()
    }
}

/// The default description of a holder: program, process id and host.
#[doc(hidden)]
pub fn this_process() -> Arc<str> {
    static THIS: OnceLock<Arc<str>> = OnceLock::new();
    THIS.get_or_init(|| {
        let program = std::env::args_os()
            .next()
            .and_then(|path| {
                Some(std::path::PathBuf::from(path).file_name()?.to_string_lossy().into_owned())
            })
            .unwrap_or_else(|| "unknown".to_owned());
        format!("{program} pid {} on {}", std::process::id(), this_host()).into()
    })
    .clone()
}

/// The name of this host.
pub(crate) fn this_host() -> &'static str {
    static HOST: OnceLock<String> = OnceLock::new();
    HOST.get_or_init(|| {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Some(host.trim()).filter(|host| !host.is_empty()).unwrap_or("localhost").to_owned()
    })
}
