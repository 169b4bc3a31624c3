//! Errors, by what the caller does next.

mod closed_by;
mod effect;
mod placed;
mod text;

use std::{fmt, time::Duration};

use self::placed::{Placed, unwrapped};
pub(crate) use self::placed::{Reworded, Shared};
pub use self::{closed_by::ClosedBy, effect::Effect, placed::BoxError};
use crate::{Holder, LockName, LossReason, Requirement};

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a call failed.
///
/// The text is complete: it names the operation, the server's address and the client library's
/// message. So [`source`](std::error::Error::source) returns `None`, and a program that prints
/// whole chains of errors repeats nothing. [`client_error`](Self::client_error) returns the client
/// library's own error.
///
/// `Debug` is the same text, since a `main` that returns an error prints that; below it stand the
/// causes that the text does not name.
#[non_exhaustive]
pub enum Error {
    /// Fix the name.
    InvalidName {
        /// The start of the name (at most 64 characters).
        name: String,
        /// The problem, and the allowed form.
        reason: String,
    },

    /// Fix the option: a builder's, or a parameter of the URL.
    InvalidOption {
        /// The option's name as the caller wrote it.
        option: String,
        /// The rejected value.
        value: String,
        /// The allowed values.
        allowed: String,
    },

    /// Fix the URL.
    InvalidUrl {
        /// The URL without its password.
        url: String,
        /// The problem, and the allowed form.
        reason: String,
    },

    /// The store promises less than [`Connect::require`](crate::Connect::require) asked for: take
    /// another store or another deployment.
    Unmet {
        /// The store's name.
        store: &'static str,
        /// The requirements that the store does not promise.
        missing: Vec<Requirement>,
    },

    /// This store, or this mode of it, cannot do what was asked.
    Unsupported {
        /// The store's name.
        store: &'static str,
        /// The unsupported request.
        what: String,
    },

    /// The lock is held, or others wait for it, and the caller asked not to wait: try again later.
    ///
    /// [`Lock::try_acquire`](crate::Lock::try_acquire) turns this into `None`.
    Contended {
        /// The lock's name.
        name: LockName,
    },

    /// The wait limit passed before the grant: try again later. A store that is slow to name the
    /// holder does not change this error. If the store answered nothing during the whole wait, the
    /// error is [`Unavailable`](Self::Unavailable).
    WaitTimeout {
        /// The lock's name.
        name: LockName,
        /// How long the caller waited.
        waited: Duration,
        /// The holder when the limit passed. `None` if the store did not name it within a second.
        holder: Option<Box<Holder>>,
        /// The caller's place among the waiters when it left; 1 is next. `None` if it had not
        /// reached the queue yet, or if the store did not report it.
        position: Option<usize>,
    },

    /// The lock was lost before it was released: stop the work, and assume that another client may
    /// hold the lock.
    Lost {
        /// The lock's name.
        name: LockName,
        /// How it was lost.
        reason: LossReason,
    },

    /// The store cannot be reached, or does not answer: try again later. It never means that
    /// another client holds the lock.
    Unavailable {
        /// The store's name.
        store: &'static str,
        /// The caller's operation: `acquire`, `release`.
        op: &'static str,
        /// Whether the request may have changed the store.
        effect: Effect,
        /// The client library's error. If the lock's [name](Self::name) or the server's address is
        /// known, this error has them, and the client library's error is its source.
        source: BoxError,
    },

    /// The place in the queue, or the grant, was lost before the caller had the lock: an operator
    /// revoked it ([`Locks::revoke`](crate::Locks::revoke)), it expired because the store was out of
    /// reach or this program was suspended for too long, or it was deleted. Acquire again, at the
    /// end of the queue, unless the loss was intended:
    /// [`wait_through_outages`](crate::Lock::wait_through_outages) does it after an outage.
    PlaceLost {
        /// The store's name.
        store: &'static str,
        /// The lock's name.
        name: Option<LockName>,
        /// How it was lost: [`Expired`](LossReason::Expired) if this client came too late: no
        /// answer had confirmed it for a TTL; [`EntryGone`](LossReason::EntryGone) if the store has
        /// no entry of it any more, revoked or for a reason that nobody has told;
        /// [`Failover`](LossReason::Failover) and [`Restored`](LossReason::Restored) if the store
        /// forgot it so.
        reason: LossReason,
    },

    /// The store refused the credentials or lacks a permission: fix the configuration.
    Denied {
        /// The store's name.
        store: &'static str,
        /// The caller's operation.
        op: &'static str,
        /// The client library's error. If the server's address is known, this error adds the
        /// address, and the client library's error is its source.
        source: BoxError,
    },

    /// What the configuration names is not there, or cannot be what is needed: a directory, a
    /// database, a chroot, a server of another kind or version. Create it, or name another one. It
    /// is final: another try without a change fails as well.
    Misconfigured {
        /// The store's name.
        store: &'static str,
        /// The caller's operation.
        op: &'static str,
        /// What is missing, and what to create or to change. If the server's address is known, this
        /// error adds the address.
        source: BoxError,
    },

    /// The store sent a reply that the driver cannot use: look at the store.
    Rejected {
        /// The store's name.
        store: &'static str,
        /// The caller's operation.
        op: &'static str,
        /// Whether the request may have changed the store.
        effect: Effect,
        /// The store's reply.
        source: BoxError,
    },

    /// The connection is closed: this program closed or drained it, or the runtime that connected
    /// has ended.
    Closed {
        /// The store's name.
        store: &'static str,
        /// The lock that was asked for.
        name: Option<LockName>,
        /// What closed it.
        by: ClosedBy,
    },
}

impl Error {
    /// For drivers: this program closed the connection.
    pub fn closed(store: &'static str) -> Self {
        Self::Closed { store, name: None, by: ClosedBy::Program }
    }

    /// For drivers: the store has no entry of the waiting attempt any more.
    pub fn place_lost(store: &'static str) -> Self {
        Self::PlaceLost { store, name: None, reason: LossReason::EntryGone }
    }

    /// Whether the failed request may have changed the store.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Unavailable { effect, .. } | Self::Rejected { effect, .. } => *effect,
            _ => Effect::None,
        }
    }

    /// Returns the client library's own error, for a downcast: an `io::Error`, `redis::RedisError`,
    /// `etcd_client::Error`, `sqlx::Error` or `zookeeper_client::Error`. `None` if the store or its
    /// client reported nothing. What the driver found itself (no answer in time) is a text that fits
    /// no downcast, or an error of these types that the driver made. Use the kind of the `Error` to
    /// decide; this is for what it does not tell, such as a server's code. `distlock::etcd::client`,
    /// and likewise for the other stores, is the version of the client library that fits.
    ///
    /// ```
    /// # use lock_core as distlock;
    /// use std::io;
    ///
    /// /// Whether SQLite's file lies where nobody can write.
    /// fn is_read_only(error: &distlock::Error) -> bool {
    ///     let own = error.client_error().and_then(|own| own.downcast_ref::<io::Error>());
    ///     own.is_some_and(|own| own.kind() == io::ErrorKind::ReadOnlyFilesystem)
    /// }
    /// # let (store, op) = ("sqlite", "connect");
    /// # let source = io::Error::from(io::ErrorKind::ReadOnlyFilesystem).into();
    /// # let error = distlock::Error::Denied { store, op, source };
    /// # assert!(is_read_only(&error));
    /// ```
    pub fn client_error(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.attached().map(unwrapped)
    }

    /// The client library's error, with what was added to it.
    fn attached(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unavailable { source, .. }
            | Self::Denied { source, .. }
            | Self::Misconfigured { source, .. }
            | Self::Rejected { source, .. } => Some(&**source),
            _ => None,
        }
    }

    /// Names the operation as the caller knows it. An operation that changes nothing has no effect.
    pub(crate) fn of(mut self, caller_s: &'static str) -> Self {
        if let Self::Unavailable { op, .. }
        | Self::Denied { op, .. }
        | Self::Misconfigured { op, .. }
        | Self::Rejected { op, .. } = &mut self
        {
            *op = caller_s;
        }
        if let Self::Unavailable { effect, .. } | Self::Rejected { effect, .. } = &mut self
            && HARMLESS.contains(&caller_s)
        {
            *effect = Effect::None;
        }
        self
    }

    /// Wraps the client library's error, if there is one.
    pub(crate) fn map_source(mut self, wrap: impl FnOnce(BoxError) -> BoxError) -> Self {
        if let Self::Unavailable { source, .. }
        | Self::Denied { source, .. }
        | Self::Misconfigured { source, .. }
        | Self::Rejected { source, .. } = &mut self
        {
            *source = wrap(std::mem::replace(source, fmt::Error.into()));
        }
        self
    }

    /// Adds the server's address, unless the error has it already.
    pub(crate) fn at(self, place: Option<&str>) -> Self {
        self.map_source(|source| match place {
            Some(place) if !source.to_string().contains(place) => {
                Placed { place: Some(place.to_owned()), ..Placed::of(source) }.into()
            }
            _ => source,
        })
    }

    /// Adds an explanation at the end.
    pub(crate) fn hinted(self, hint: String) -> Self {
        self.map_source(|source| Placed { hint: Some(hint), ..Placed::of(source) }.into())
    }

    /// Adds the lock's name, unless the error has one.
    pub(crate) fn about(self, lock: &LockName) -> Self {
        let lock = self.name().or(Some(lock)).cloned();
        match self {
            error @ Self::Unavailable { .. } => {
                error.map_source(|source| Placed { name: lock, ..Placed::of(source) }.into())
            }
            Self::PlaceLost { store, reason, .. } => Self::PlaceLost { store, name: lock, reason },
            Self::Closed { store, by, .. } => Self::Closed { store, name: lock, by },
            error => error,
        }
    }

    /// Whether the lock was held and is lost: stop the work.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Lost { .. })
    }

    /// Whether the connection is closed or being drained: nothing more is acquired on it. A loop of
    /// [`Election::keep_running`](crate::Election::keep_running) ends with this error at a
    /// shutdown. [`ClosedBy`] says what closed it.
    ///
    /// ```
    /// # use lock_core as distlock;
    /// /// What a leader's loop came to: a drain is its usual end.
    /// fn ended(led: distlock::Result<()>) -> distlock::Result<()> {
    ///     match led {
    ///         Err(error) if error.is_closed() => Ok(()),
    ///         led => led,
    ///     }
    /// }
    /// ```
    pub fn is_closed(&self) -> bool {
        matches!(self, Self::Closed { .. })
    }

    /// Whether others held the lock, or waited for it, for as long as the caller was ready to wait.
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Contended { .. } | Self::WaitTimeout { .. })
    }

    /// Whether the store could not be reached, or did not answer. Says nothing about the lock's
    /// holder.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    /// The name of the lock, if the error is about one lock.
    pub fn name(&self) -> Option<&LockName> {
        match self {
            Self::Contended { name } | Self::WaitTimeout { name, .. } | Self::Lost { name, .. } => {
                Some(name)
            }
            Self::PlaceLost { name, .. } | Self::Closed { name, .. } => name.as_ref(),
            Self::Unavailable { source, .. } => source.downcast_ref::<Placed>()?.name.as_ref(),
            _ => None,
        }
    }

    /// Whether the same call may succeed later without a fix.
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

impl std::error::Error for Error {}

/// Operations that change nothing in a store, or nothing that has to be undone.
const HARMLESS: [&str; 7] =
    ["connect", "inspect", "names", "leader", "observe", "ping", "token floor"];

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(op: &'static str) -> Error {
        let source = std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into();
        Error::Unavailable { store: "redis", op, effect: Effect::Unknown, source }
    }

    #[test]
    fn a_server_is_named_once() {
        let error = refused("release").of("release").at(Some("h:1")).at(Some("h:1"));
        let text = "redis is unavailable: release failed (it may have taken effect): h:1: \
                    connection refused";
        assert_eq!(error.to_string(), text);
        assert!(std::error::Error::source(&error).is_none(), "all of it has been said");
        let Error::Unavailable { source, .. } = error else { panic!("another error") };
        let own = source.source().expect("what the library said");
        assert!(own.downcast_ref::<std::io::Error>().is_some(), "{own:?}");
    }

    #[test]
    fn a_mistake_in_a_configuration_is_final() {
        let why = "there is no database shop: create it";
        let error = crate::keep::errors::misconfigured("mysql", "send", why).of("connect");
        let text = "mysql is not set up for connect: h:1: there is no database shop: create it";
        let error = error.at(Some("h:1"));
        assert_eq!((error.to_string().as_str(), error.is_transient()), (text, false));
        let again = crate::keep::errors::again(&error);
        assert_eq!(again.to_string(), text);
        assert!(matches!(again, Error::Misconfigured { .. }));
    }

    #[test]
    fn an_error_names_its_lock_once() {
        let (name, other): (LockName, LockName) = ("a".parse().unwrap(), "b".parse().unwrap());
        let late = crate::keep::errors::late("redis");
        for (error, text) in [
            (
                refused("acquire").at(Some("h:1")),
                "redis is unavailable: acquire of lock a failed (it may have taken effect): h:1: \
                 connection refused",
            ),
            (
                Error::place_lost("redis"),
                "lost the place in line for lock a in redis: its entry was revoked, or vanished \
                 from the store",
            ),
            (
                late,
                "lost the place in line for lock a in redis: it could not be renewed before its \
                 deadline",
            ),
            (Error::closed("redis"), "redis connection is closed (lock a)"),
        ] {
            assert_eq!(error.name(), None);
            let error = error.about(&name).at(Some("h:1")).about(&other);
            assert_eq!((error.to_string().as_str(), error.name()), (text, Some(&name)));
        }
        let busy = Error::Contended { name: name.clone() }.about(&other);
        assert_eq!(busy.name(), Some(&name));
    }

    #[test]
    fn every_kind_of_close_counts_as_closed() {
        for by in [ClosedBy::Program, ClosedBy::Drain, ClosedBy::Runtime("main".into())] {
            let closed = Error::Closed { store: "redis", name: None, by };
            assert!(closed.is_closed() && !closed.is_transient() && !closed.is_lost(), "{closed}");
        }
        let (name, reason) = ("orders/42".parse().unwrap(), LossReason::Closed);
        assert!(!Error::Lost { name, reason }.is_closed(), "that is a guard's loss by a close");
        assert!(!refused("acquire").is_closed());
    }

    #[test]
    fn reading_operations_report_no_effect() {
        for (op, noted) in [("acquire", true), ("connect", false), ("names", false)] {
            let error = refused("send").of(op);
            assert_eq!(error.to_string().contains("may have taken effect"), noted, "{error}");
            assert_eq!(error.effect() == Effect::Unknown, noted);
        }
    }
}
