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
    /// Whether there was a connection for the request.
    was_sent: bool,
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
        Self { kind, why: why.to_string().into(), was_sent: true }
    }

    /// The request cannot be sent, for the reason of an earlier fault.
    pub(super) fn down(self) -> Self {
        let kind = match self.kind {
            Kind::Unknown | Kind::Silent => Kind::Down,
            kind => kind,
        };
        Self { kind, was_sent: false, ..self }
    }

    /// There was no connection yet, or it is closed.
    pub(super) fn not_connected() -> Self {
        Self::new(Kind::Down, "not connected yet").down()
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
        let may = matches!(self.kind, Kind::Unknown | Kind::Silent | Kind::Young | Kind::Refused);
        self.was_sent && may
    }

    /// Whether the node has answered.
    pub(super) fn is_answer(&self) -> bool {
        self.was_sent && !matches!(self.kind, Kind::Unknown | Kind::Silent)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_that_could_not_be_used_got_no_request() {
        let unfit = Fault::unfit("it is a replica");
        assert!(unfit.was_sent() && unfit.is_answer(), "the answer to a request");
        let down = unfit.down();
        assert!(!down.was_sent() && !down.is_answer(), "the reason why there is no connection");
        let silent = Fault::silent(Duration::from_secs(1));
        assert!(silent.was_sent() && !silent.is_answer());
        assert!(!Fault::not_connected().was_sent() && !Fault::not_connected().is_answer());
    }
}
