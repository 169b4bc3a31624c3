//! Why requests fail, and the caller's errors for that.

use std::{fmt, time::Duration};

use lock_core::{BoxError, Effect, Error, duration::shown};

/// The name of the store in errors and events.
pub(crate) const STORE: &str = "etcd";

/// The client's text when it does not accept an answer. The request was carried out.
const ANSWER_TOO_LARGE: &str = "decoded message length too large";

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    source: BoxError,
}

/// The kind of a failure: what to do about it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum FailureKind {
    /// No server listened: nothing was sent. Try again, on another endpoint if there is one.
    Refused,
    /// The connection or the member failed half-way: the request may have been carried out. Try
    /// again.
    Broken,
    /// No answer in time: the request may have been carried out. Try again on a new connection.
    Silent,
    /// The member had too much to do: it did not act. Try again later.
    Busy,
    /// The login has expired: it did not act. Try again with a new one.
    LoggedOut,
    /// The lease is gone, and with it all of its keys.
    LeaseGone,
    /// The token floor was raised after the entry was made and before any caller knew of it. The
    /// entry must be removed, and the attempt must begin again.
    Overtaken,
    /// The credentials or permissions are wrong. Trying again is useless.
    Denied,
    /// etcd rejects the request: it did not act. Trying again is useless.
    Rejected,
    /// Something is wrong with the request or its answer, and it may have been carried out all the
    /// same. Trying again is useless.
    Unclear,
}

impl FailureKind {
    /// Whether the same request may succeed in a moment.
    pub(crate) fn is_passing(self) -> bool {
        matches!(self, Self::Refused | Self::Broken | Self::Silent | Self::Busy | Self::LoggedOut)
    }

    /// Whether the request may have been carried out, or may still be.
    pub(crate) fn is_ambiguous(self) -> bool {
        matches!(self, Self::Broken | Self::Silent | Self::Unclear)
    }
}

impl Failure {
    /// A failure that this crate found, not the client.
    pub(crate) fn new(kind: FailureKind, source: impl Into<BoxError>) -> Self {
        Self { kind, source: source.into() }
    }

    /// No answer within `limit`.
    pub(crate) fn silent(limit: Duration) -> Self {
        Self::new(FailureKind::Silent, format!("no answer within {}", shown(limit)))
    }

    /// The answer was well-formed but made no sense.
    pub(crate) fn senseless(what: &'static str) -> Self {
        Self::new(FailureKind::Unclear, what)
    }

    /// The same failure, for a request whose effect does not matter.
    pub(crate) fn without_effect(self) -> Self {
        let kind = match self.kind {
            FailureKind::Broken | FailureKind::Silent => FailureKind::Refused,
            FailureKind::Unclear => FailureKind::Rejected,
            kind => kind,
        };
        Self { kind, ..self }
    }

    /// The failure of a stream. The client does not log in again for a stream, so an expired login
    /// is [`LoggedOut`](FailureKind::LoggedOut).
    pub(crate) fn of_stream(error: impl Into<Self>) -> Self {
        let failure: Self = error.into();
        match failure.kind == FailureKind::Denied
            && failure.source.to_string().contains("auth token")
        {
            true => Self { kind: FailureKind::LoggedOut, ..failure },
            false => failure,
        }
    }

    /// Whether etcd refuses the login itself, and not what it asks for.
    pub(crate) fn is_login_refused(&self) -> bool {
        self.kind == FailureKind::Denied
            && self.source.to_string().contains("authentication failed")
    }

    /// Whether etcd would accept a smaller request, or a shorter transaction.
    pub(crate) fn is_too_large(&self) -> bool {
        let says = self.source.to_string();
        let words = ["too many operations", "request is too large", "message larger than max"];
        self.kind == FailureKind::Rejected && words.iter().any(|words| says.contains(words))
    }

    /// Whether a request for less data would be answered.
    pub(crate) fn is_answer_too_large(&self) -> bool {
        self.kind == FailureKind::Unclear && self.source.to_string().contains(ANSWER_TOO_LARGE)
    }

    /// Whether the requested revision was compacted.
    pub(crate) fn is_compacted(&self) -> bool {
        self.kind == FailureKind::Rejected && self.source.to_string().contains("has been compacted")
    }

    /// Converts it to the caller's error. `ambiguous`: an earlier sending of the same request may
    /// have been carried out.
    pub(crate) fn into_error(self, op: &'static str, ambiguous: bool) -> Error {
        let effect = match ambiguous || self.kind.is_ambiguous() {
            true => Effect::Unknown,
            false => Effect::None,
        };
        let Self { kind, source } = self;
        match kind {
            FailureKind::Denied => Error::Denied { store: STORE, op, source },
            FailureKind::Rejected | FailureKind::Unclear => {
                Error::Rejected { store: STORE, op, effect, source }
            }
            _ => Error::Unavailable { store: STORE, op, effect, source },
        }
    }
}

impl Clone for Failure {
    fn clone(&self) -> Self {
        Self::new(self.kind, self.source.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ambiguous_failure_has_an_unknown_effect() {
        let told = |kind| Failure::new(kind, "why").into_error("acquire", false);
        assert_eq!(told(FailureKind::Refused).effect(), Effect::None);
        assert_eq!(told(FailureKind::Busy).effect(), Effect::None);
        assert_eq!(told(FailureKind::Broken).effect(), Effect::Unknown);
        assert_eq!(
            Failure::silent(Duration::ZERO).into_error("acquire", false).effect(),
            Effect::Unknown
        );
        assert!(matches!(told(FailureKind::Denied), Error::Denied { .. }));
        assert!(matches!(
            told(FailureKind::Rejected),
            Error::Rejected { effect: Effect::None, .. }
        ));
        assert!(matches!(
            told(FailureKind::Unclear),
            Error::Rejected { effect: Effect::Unknown, .. }
        ));
        let refused_after_silence =
            Failure::new(FailureKind::Refused, "why").into_error("acquire", true);
        assert_eq!(refused_after_silence.effect(), Effect::Unknown);
    }
}
