//! Why a node's answer does not count.

use std::{fmt, io, sync::Arc, time::Duration};

use redis::RedisError;

use crate::{
    config::Address,
    error::{is_broken, is_denied, is_passing},
};

/// Why a node's answer does not count.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Fault {
    kind: Kind,
    why: Arc<str>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Kind {
    /// There is no connection, so nothing was sent.
    Down,
    /// The connection broke. The request may have taken effect.
    Unknown,
    /// There was no answer in time. The request may have taken effect, or may still do so.
    Silent,
    /// The node refused the login or a permission.
    Denied,
    /// The node refused the request for a reason that lasts.
    Refused,
    /// It voted, but its votes do not count yet.
    Young,
    /// It is another node of the list.
    Twin,
}

impl Fault {
    fn new(kind: Kind, why: impl fmt::Display) -> Self {
        Self { kind, why: why.to_string().into() }
    }

    /// The request cannot be sent, for the reason of an earlier fault.
    pub(super) fn down(self) -> Self {
        match self.kind {
            Kind::Unknown | Kind::Silent => Self { kind: Kind::Down, ..self },
            _ => self,
        }
    }

    /// There was no connection yet, or it is closed.
    pub(super) fn not_connected() -> Self {
        Self::new(Kind::Down, "not connected yet")
    }

    /// The node has not answered in time.
    pub(super) fn silent(limit: Duration) -> Self {
        Self::new(Kind::Silent, format_args!("no answer within {limit:?}"))
    }

    /// The votes of a node that has restarted count again after this time.
    pub(super) fn young(left: Duration) -> Self {
        let left = left.as_secs() + 1;
        Self::new(
            Kind::Young,
            format_args!("it has started less than max_ttl ago, and its votes count in {left} s"),
        )
    }

    /// The node is the same server as another node of the list.
    pub(super) fn twin(of: &Address) -> Self {
        Self::new(Kind::Twin, format_args!("it is the same server as {of}"))
    }

    /// The node cannot be used as it is.
    pub(super) fn unfit(why: impl fmt::Display) -> Self {
        Self::new(Kind::Refused, why)
    }

    /// The script cannot give this answer.
    pub(super) fn odd(value: &redis::Value) -> Self {
        Self::new(Kind::Refused, format_args!("unexpected answer {value:?}"))
    }

    /// The client library's error.
    pub(super) fn of(error: &RedisError) -> Self {
        let kind = match error {
            error if is_denied(error) => Kind::Denied,
            error if is_broken(error) && !error.is_connection_refusal() => Kind::Unknown,
            error if is_passing(error) || error.is_connection_refusal() => Kind::Down,
            _ => Kind::Refused,
        };
        Self::new(kind, error)
    }

    /// Whether the request may have reached the node.
    pub(super) fn was_sent(&self) -> bool {
        matches!(self.kind, Kind::Unknown | Kind::Silent | Kind::Young | Kind::Refused)
    }

    /// Whether the connection must be made anew.
    pub(super) fn breaks(&self) -> bool {
        self.kind == Kind::Unknown
    }

    /// Whether the node has acted, but its votes do not count yet.
    pub(super) fn is_young(&self) -> bool {
        self.kind == Kind::Young
    }

    /// Whether the node is another node of the list.
    pub(super) fn is_twin(&self) -> bool {
        self.kind == Kind::Twin
    }

    /// The error of a request to all nodes, of which these failed. `had` says how many nodes did
    /// what `needed` must do.
    pub(super) fn all(
        had: &str,
        of: usize,
        needed: usize,
        faults: &[(&Address, &Self)],
    ) -> io::Error {
        // Only if no outage ends it.
        let is = |kind| faults.iter().filter(|(_, f)| f.kind == kind).count() > of - needed;
        let kind = match () {
            () if is(Kind::Denied) => io::ErrorKind::PermissionDenied,
            () if is(Kind::Refused) => io::ErrorKind::InvalidData,
            () => io::ErrorKind::NotConnected,
        };
        let reasons: Vec<_> =
            faults.iter().map(|(node, fault)| format!("{node}: {}", fault.why)).collect();
        let why = format!("{had}, and {needed} are needed: {}", reasons.join("; "));
        io::Error::new(kind, why)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}
