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
    /// The session ended before the answer. The attempt may begin again in another one.
    SessionEnded,
    /// The key of the session is gone: the token floor was raised since it was made. What the
    /// attempt has made must be removed, and it must begin again in another session.
    Outdated,
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
        match failure.says(FailureKind::Denied, "auth token") {
            true => failure.logged_out(),
            false => failure,
        }
    }

    /// The same failure, which a new login may mend.
    pub(crate) fn logged_out(self) -> Self {
        Self { kind: FailureKind::LoggedOut, ..self }
    }

    /// The same failure, which trying again does not mend.
    pub(crate) fn denied(self) -> Self {
        Self { kind: FailureKind::Denied, ..self }
    }

    /// Whether it is of this kind and has these words.
    fn says(&self, kind: FailureKind, words: &str) -> bool {
        self.kind == kind && self.source.to_string().contains(words)
    }

    /// Whether etcd refuses the login itself, and not what it asks for.
    pub(crate) fn is_login_refused(&self) -> bool {
        self.says(FailureKind::Denied, "authentication failed")
    }

    /// Whether a part of the same request may succeed: etcd answers, and does not refuse the login.
    pub(crate) fn concerns_a_part(&self) -> bool {
        !self.kind.is_passing() && !self.is_login_refused()
    }

    /// Whether the other side ended the connection before it was made.
    pub(crate) fn is_reset(&self) -> bool {
        self.says(FailureKind::Refused, "reset by peer")
    }

    /// Whether etcd would accept a smaller request, or a shorter transaction.
    pub(crate) fn is_too_large(&self) -> bool {
        let words = ["too many operations", "request is too large", "message larger than max"];
        words.iter().any(|words| self.says(FailureKind::Rejected, words))
    }

    /// Whether a request for less data would be answered.
    pub(crate) fn is_answer_too_large(&self) -> bool {
        self.says(FailureKind::Unclear, ANSWER_TOO_LARGE)
    }

    /// Whether the requested revision was compacted.
    pub(crate) fn is_compacted(&self) -> bool {
        self.says(FailureKind::Rejected, "has been compacted")
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
        use FailureKind as F;
        for (kind, ambiguous, effect) in [
            (F::Refused, false, Effect::None),
            (F::Busy, false, Effect::None),
            (F::Broken, false, Effect::Unknown),
            (F::Silent, false, Effect::Unknown),
            (F::Refused, true, Effect::Unknown),
            (F::Rejected, false, Effect::None),
            (F::Unclear, false, Effect::Unknown),
        ] {
            let error = Failure::new(kind, "why").into_error("acquire", ambiguous);
            assert_eq!(error.effect(), effect, "{error:?}");
            let rejected = matches!(kind, F::Rejected | F::Unclear);
            assert_eq!(matches!(error, Error::Rejected { .. }), rejected, "{error:?}");
        }
        let denied = Failure::new(F::Denied, "why").into_error("acquire", false);
        assert!(matches!(denied, Error::Denied { .. }));
    }
}
