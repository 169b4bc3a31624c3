//! Errors, by what the caller does next.

use std::{fmt, sync::Arc, time::Duration};

use crate::{Holder, LockName, LossReason, Requirement};

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The error of a client library, as it came.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a call did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Fix the name.
    #[error("invalid lock name {name:?}: {reason}")]
    InvalidName {
        /// The start of the name (at most 64 characters).
        name: String,
        /// What is wrong, and what is allowed.
        reason: String,
    },

    /// Fix the option: a builder's, or a parameter of the URL.
    #[error("invalid {option} {value:?}: {allowed}")]
    InvalidOption {
        /// The option's name as the caller wrote it.
        option: String,
        /// The rejected value.
        value: String,
        /// What is allowed.
        allowed: String,
    },

    /// Fix the URL.
    #[error("invalid store URL {url:?}: {reason}")]
    InvalidUrl {
        /// The URL without its password.
        url: String,
        /// What is wrong, and what is allowed.
        reason: String,
    },

    /// The store promises less than [`Connect::require`](crate::Connect::require) asked for: take
    /// another store or another deployment.
    #[error("{store} does not promise {}", list(missing))]
    Unmet {
        /// The store's name.
        store: &'static str,
        /// What was required and is not promised.
        missing: Vec<Requirement>,
    },

    /// This store, or this mode of it, cannot do what was asked.
    #[error("{store} cannot {what}")]
    Unsupported {
        /// The store's name.
        store: &'static str,
        /// What it cannot do.
        what: String,
    },

    /// Somebody holds the lock, or waits for it, and the caller asked not to wait: come back later.
    ///
    /// [`Lock::try_acquire`](crate::Lock::try_acquire) turns this into `None`.
    #[error("lock {name} is busy")]
    Contended {
        /// The lock's name.
        name: LockName,
    },

    /// The wait limit passed before there was a grant: come back later. It stays this error however
    /// slow the store is to say who was in the way; where it did not answer anything during the
    /// whole wait, the error is [`Unavailable`](Self::Unavailable).
    #[error("gave up on lock {name} after {waited:.1?}: {}", blame(holder.as_deref(), *position))]
    WaitTimeout {
        /// The lock's name.
        name: LockName,
        /// How long the caller waited.
        waited: Duration,
        /// Who held the lock when the limit passed. `None` if the store did not say so within a
        /// second.
        holder: Option<Box<Holder>>,
        /// The caller's place among the waiters when it left: 1 was next. `None` if it had not
        /// reached the queue yet, or the store did not say.
        position: Option<usize>,
    },

    /// The lock was lost before it was released: stop the work, and assume that somebody else may
    /// hold the lock.
    #[error("lock {name} was lost: {reason}")]
    Lost {
        /// The lock's name.
        name: LockName,
        /// How it was lost.
        reason: LossReason,
    },

    /// The store cannot be reached, or does not answer: try again later. Never means "held by
    /// somebody else".
    #[error("{store} is unavailable: {op} failed{}: {source}", effect.note())]
    Unavailable {
        /// The store's name.
        store: &'static str,
        /// What the caller had asked for: `acquire`, `release`.
        op: &'static str,
        /// Whether the request may have changed the store.
        effect: Effect,
        /// What the client library said.
        source: BoxError,
    },

    /// The place in the queue was lost before there was a grant: an operator revoked it
    /// ([`Locks::revoke`](crate::Locks::revoke)), it expired because the store was out of reach or
    /// this program was suspended for too long, or somebody deleted it. Ask again, at the end of
    /// the queue, unless it was meant.
    #[error("lost the place in line in {store}: it was revoked, deleted, or not renewed in time")]
    PlaceLost {
        /// The store's name.
        store: &'static str,
    },

    /// The store refused the credentials or lacks a permission: fix the configuration.
    #[error("{store} denied {op}: {source}")]
    Denied {
        /// The store's name.
        store: &'static str,
        /// What the caller had asked for.
        op: &'static str,
        /// What the client library said.
        source: BoxError,
    },

    /// The store answered with something that the driver cannot work with: look at the store.
    #[error("{store} rejected {op}{}: {source}", effect.note())]
    Rejected {
        /// The store's name.
        store: &'static str,
        /// What the caller had asked for.
        op: &'static str,
        /// Whether the request may have changed the store.
        effect: Effect,
        /// What the store said.
        source: BoxError,
    },

    /// The connection is closed: this program closed or drained it, or the runtime that connected has ended.
    #[error("{store} connection is closed{by}")]
    Closed {
        /// The store's name.
        store: &'static str,
        /// What closed it.
        by: ClosedBy,
    },
}

/// What closed a connection.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum ClosedBy {
    /// This program, by [`Locks::close`](crate::Locks::close).
    Program,
    /// This program, by [`Locks::drain`](crate::Locks::drain): nobody new may hold anything.
    Drain,
    /// The end of the tokio runtime that connected, and which one that was: a connection lives in
    /// it, see [`Locks`](crate::Locks#runtimes). What was held is free after its TTL.
    Runtime(Arc<str>),
}

impl fmt::Display for ClosedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program => Ok(()),
            Self::Drain => {
                f.write_str(": it is being drained, and this program acquires nothing more")
            }
            Self::Runtime(runtime) => write!(
                f,
                ": the tokio runtime that connected has ended ({runtime}); connect once in each \
                 runtime (once in each test), or in one that lives as long as the connection"
            ),
        }
    }
}

/// Whether a failed request may have changed the store.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Effect {
    /// The store did not act. Trying again is safe.
    None,
    /// No answer came. The request may have taken effect, or may still. Drivers resolve this
    /// themselves: whatever such a request left behind is removed in the background.
    Unknown,
}

impl Effect {
    fn note(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Unknown => " (it may have taken effect)",
        }
    }
}

impl Error {
    /// For drivers: this program closed the connection.
    pub fn closed(store: &'static str) -> Self {
        Self::Closed { store, by: ClosedBy::Program }
    }

    /// Whether the failed request may have changed the store.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Unavailable { effect, .. } | Self::Rejected { effect, .. } => *effect,
            _ => Effect::None,
        }
    }

    /// The same error with the caller's word for what was being done.
    pub(crate) fn of(mut self, caller_s: &'static str) -> Self {
        if let Self::Unavailable { op, .. } | Self::Denied { op, .. } | Self::Rejected { op, .. } =
            &mut self
        {
            *op = caller_s;
        }
        self
    }

    /// Whether the same call may succeed later without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Contended { .. }
                | Self::WaitTimeout { .. }
                | Self::Unavailable { .. }
                | Self::PlaceLost { .. }
        )
    }
}

fn list(missing: &[Requirement]) -> String {
    missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn blame(holder: Option<&Holder>, position: Option<usize>) -> String {
    let unsaid = || "the store did not say who holds it".to_owned();
    let holder = holder.map_or_else(unsaid, |h| format!("held by {h}"));
    match position {
        Some(position) => format!("{holder}; position {position} in the queue"),
        None => holder,
    }
}
