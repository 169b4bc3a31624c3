//! What a driver is asked for.

use std::{sync::OnceLock, time::Duration};

use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{LockName, queue::Kind};

/// One wish for one lock, as a driver gets it. The TTL is checked against the driver's
/// [`Guarantees::ttl`](crate::Guarantees::ttl) before.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The lock's name.
    pub name: LockName,
    /// What is asked for.
    pub kind: Kind,
    /// How long the grant outlives its last renewal.
    pub ttl: Duration,
    /// Whether the driver renews the grant.
    pub term: Term,
    /// Whether to queue up.
    pub wait: Wait,
    /// What a leader says to everybody; `None` for a lock.
    pub value: Option<std::sync::Arc<[u8]>>,
    /// What the holder says about itself, for people.
    pub holder: std::sync::Arc<str>,
}

impl Request {
    /// A request with the defaults: exclusive, renewed, waiting, [`this_process`] as the holder.
    pub fn new(name: LockName, ttl: Duration) -> Self {
        Self {
            name,
            kind: Kind::Exclusive,
            ttl,
            term: Term::Renewed,
            wait: Wait::Queue,
            value: None,
            holder: this_process(),
        }
    }
}

/// Whether a grant is renewed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Term {
    /// The driver renews it until it is released.
    Renewed,
    /// It ends one TTL after it was granted or renewed by hand.
    Fixed,
}

/// Whether to queue up for a lock that is taken.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Wait {
    /// Answer [`Error::Contended`](crate::Error::Contended) at once, leave nothing behind, overtake
    /// nobody, disturb no waiter.
    Try,
    /// Queue up and wait until it is granted or the attempt is cancelled.
    Queue,
}

/// One attempt to get a lock: its identity, and whether the caller still wants it.
///
/// The identity is the attempt's, never a thread's, a connection's or a session's: what an attempt
/// sends twice takes effect once, and what it releases is its own.
#[derive(Clone, Debug)]
pub struct Attempt {
    id: Uuid,
    cancel: CancellationToken,
}

impl Attempt {
    /// A new attempt with an identity of its own.
    #[allow(clippy::new_without_default, reason = "two attempts are never alike")]
    pub fn new() -> Self {
        Self { id: Uuid::new_v4(), cancel: CancellationToken::new() }
    }

    /// Another attempt of the same caller: whoever cancels one cancels both.
    #[must_use]
    pub fn another(&self) -> Self {
        Self { id: Uuid::new_v4(), cancel: self.cancel.clone() }
    }

    /// The attempt's identity.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Tells the driver that nobody waits for the answer any more.
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
    /// Dropping the future forgets the wait and nothing else.
    pub async fn cancelled(&self) {
        self.cancel.cancelled().await;
    }
}

/// The default description of a holder: program, process id and host.
pub fn this_process() -> std::sync::Arc<str> {
    static THIS: OnceLock<std::sync::Arc<str>> = OnceLock::new();
    THIS.get_or_init(|| {
        let program = std::env::args_os()
            .next()
            .and_then(|path| {
                Some(std::path::PathBuf::from(path).file_name()?.to_string_lossy().into_owned())
            })
            .unwrap_or_else(|| "unknown".to_owned());
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let host = Some(host.trim()).filter(|h| !h.is_empty()).unwrap_or("localhost");
        format!("{program} pid {} on {host}", std::process::id()).into()
    })
    .clone()
}
