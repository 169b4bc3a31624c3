//! Why requests fail, and the caller's errors for that.

use std::{error::Error as _, fmt, sync::Arc, time::Duration};

use lock_core::{BoxError, Effect, Error, duration::shown, keep::errors::reworded};
use tonic::{Code, ConnectError, Status};

use crate::wire::tls_error;

/// The name of the store in errors and events.
pub(crate) const STORE: &str = "etcd";

/// The client's text when it does not accept an answer. The request was carried out.
const ANSWER_TOO_LARGE: &str = "decoded message length too large";

/// In the message of an etcd whose quota is used up.
const FULL: &str = "space exceeded";

/// Why a request failed. Several callers may get it.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    source: Arc<dyn std::error::Error + Send + Sync>,
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
        let source: BoxError = source.into();
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
        let source = BoxError::from(source);
        match kind {
            FailureKind::Denied => Error::Denied { store: STORE, op, source },
            FailureKind::Rejected | FailureKind::Unclear => {
                Error::Rejected { store: STORE, op, effect, source }
            }
            _ => Error::Unavailable { store: STORE, op, effect, source },
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.source)
    }
}

impl From<etcd_client::Error> for Failure {
    fn from(error: etcd_client::Error) -> Self {
        Self::new(kind_of(&error), shorten(error))
    }
}

/// Maps each of the client's errors to its kind.
fn kind_of(error: &etcd_client::Error) -> FailureKind {
    use etcd_client::Error as E;
    match error {
        E::GRpcStatus(status) => kind_of_status(status),
        // The client's text for a first keep-alive answered with TTL 0.
        E::LeaseKeepAliveError(text) if text == "lease not found" => FailureKind::LeaseGone,
        E::InvalidArgs(_) | E::InvalidUri(_) | E::InvalidMetadataValue(_) => FailureKind::Rejected,
        // Streams that ended, channels that closed, transports that broke.
        _ => FailureKind::Broken,
    }
}

fn kind_of_status(status: &Status) -> FailureKind {
    let says = |text: &str| status.message().contains(text);
    match status.code() {
        // The end of a connection may have other codes: ENHANCE_YOUR_CALM is ResourceExhausted.
        _ if says("h2 protocol error") => FailureKind::Broken,
        // The client's error when no connection could be made, and so nothing was sent.
        Code::Unavailable if is_unconnected(status) => FailureKind::Refused,
        Code::Unavailable if says("tcp connect error") || says("dns error") => FailureKind::Refused,
        // This member serves no locks, but another one does. Earlier versions say so as Unavailable.
        Code::FailedPrecondition | Code::Unavailable
            if says("not supported for learner") || says("not capable") =>
        {
            FailureKind::Refused
        }
        Code::ResourceExhausted if says("too many requests") => FailureKind::Busy,
        Code::NotFound if says("lease not found") => FailureKind::LeaseGone,
        // The client crate logs in again by itself, but not for this error.
        Code::InvalidArgument if says("auth store is old") => FailureKind::LoggedOut,
        Code::PermissionDenied | Code::Unauthenticated => FailureKind::Denied,
        // Wrong password; a user where authentication is off; none where it is on.
        Code::InvalidArgument | Code::FailedPrecondition
            if says("authentication") || says("user name is empty") =>
        {
            FailureKind::Denied
        }
        // A transport that broke or a cluster without a leader. The request may have been carried
        // out.
        Code::Ok | Code::Cancelled | Code::Unknown | Code::DeadlineExceeded => FailureKind::Broken,
        Code::Aborted | Code::Internal | Code::Unavailable => FailureKind::Broken,
        _ if is_refusal(status) => FailureKind::Rejected,
        _ => FailureKind::Unclear,
    }
}

/// Whether etcd's quota is used up.
pub(crate) fn is_full(error: &etcd_client::Error) -> bool {
    matches!(error, etcd_client::Error::GRpcStatus(status) if status.message().contains(FULL))
}

fn is_unconnected(status: &Status) -> bool {
    causes(status).any(|cause| cause.is::<ConnectError>())
}

/// The errors behind a status, from the outermost to the innermost.
fn causes(status: &Status) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    std::iter::successors(status.source(), |error| (*error).source())
}

/// Whether etcd says that it did nothing, or its gRPC server says that it has not passed the
/// request on. If the space is exceeded, etcd says so also after it has acted.
fn is_refusal(status: &Status) -> bool {
    let says = |text: &str| status.message().contains(text);
    let unread = status.code() == Code::Unimplemented || says("received message larger than max");
    unread || (says("etcdserver: ") && !says(FULL))
}

/// The server's message, or the client's with its last cause, without the client's dump of headers.
fn shorten(error: etcd_client::Error) -> BoxError {
    let etcd_client::Error::GRpcStatus(status) = &error else { return error.into() };
    let mut told = format!("{} ({:?})", status.message(), status.code());
    if status.message().contains(FULL) {
        told.push_str(": compact, defragment, and then `etcdctl alarm disarm`");
    }
    let text = tls_error::explained(match causes(status).last() {
        Some(cause) => format!("{told}: {cause}"),
        None => told,
    });
    reworded(text, error)
}

#[cfg(test)]
mod tests {
    use super::{Code as C, FailureKind as F, *};

    #[test]
    fn an_ambiguous_failure_has_an_unknown_effect() {
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

    #[test]
    fn a_status_in_fewer_words_is_still_there_for_a_downcast() {
        let status = Status::new(C::PermissionDenied, "etcdserver: permission denied");
        let failure = Failure::from(etcd_client::Error::GRpcStatus(status));
        let error = failure.clone().into_error("acquire", false);
        assert!(error.to_string().ends_with("etcdserver: permission denied (PermissionDenied)"));
        let own = error.client_error().and_then(|own| own.downcast_ref::<etcd_client::Error>());
        assert!(matches!(own, Some(etcd_client::Error::GRpcStatus(_))), "{own:?}");
    }

    #[test]
    fn each_status_has_its_kind() {
        for (code, text, kind) in [
            (C::Unavailable, "tcp connect error", F::Refused),
            (C::Unavailable, "dns error", F::Refused),
            (C::Unavailable, "etcdserver: no leader", F::Broken),
            (C::Unavailable, "etcdserver: request timed out", F::Broken),
            (C::Unavailable, "etcdserver: leader changed", F::Broken),
            (C::FailedPrecondition, "etcdserver: rpc not supported for learner", F::Refused),
            (C::Unavailable, "etcdserver: rpc not supported for learner", F::Refused),
            (C::FailedPrecondition, "etcdserver: not capable", F::Refused),
            (C::Unknown, "h2 protocol error", F::Broken),
            (C::Cancelled, "Timeout expired", F::Broken),
            (C::DeadlineExceeded, "context deadline exceeded", F::Broken),
            (C::Internal, "stream reset", F::Broken),
            (C::ResourceExhausted, "etcdserver: too many requests", F::Busy),
            (C::ResourceExhausted, "etcdserver: mvcc: database space exceeded", F::Unclear),
            (C::ResourceExhausted, "grpc: received message larger than max (9 vs. 8)", F::Rejected),
            (C::ResourceExhausted, "trying to send message larger than max (9 vs. 8)", F::Unclear),
            (
                C::ResourceExhausted,
                "h2 protocol error: .. calm down ..; ENHANCE_YOUR_CALM",
                F::Broken,
            ),
            (C::PermissionDenied, "h2 protocol error: ..", F::Broken),
            (C::OutOfRange, "Error, decoded message length too large: found 9 bytes", F::Unclear),
            (C::FailedPrecondition, "some proxy's words", F::Unclear),
            (C::NotFound, "etcdserver: requested lease not found", F::LeaseGone),
            (C::InvalidArgument, "etcdserver: revision of auth store is old", F::LoggedOut),
            (C::PermissionDenied, "etcdserver: permission denied", F::Denied),
            (C::Unauthenticated, "etcdserver: invalid auth token", F::Denied),
            (C::InvalidArgument, "etcdserver: authentication failed, invalid ..", F::Denied),
            (C::InvalidArgument, "etcdserver: user name is empty", F::Denied),
            (C::FailedPrecondition, "etcdserver: authentication is not enabled", F::Denied),
            (C::InvalidArgument, "etcdserver: request is too large", F::Rejected),
            (C::FailedPrecondition, "etcdserver: lease already exists", F::Rejected),
            (C::OutOfRange, "etcdserver: mvcc: required revision has been compacted", F::Rejected),
            (C::Unimplemented, "unknown service", F::Rejected),
            (C::DataLoss, "etcdserver: corrupt cluster", F::Rejected),
        ] {
            let error = etcd_client::Error::GRpcStatus(Status::new(code, text));
            assert_eq!(kind_of(&error), kind, "{error}");
        }
    }

    #[test]
    fn each_other_error_has_its_kind() {
        use etcd_client::Error as E;
        for (error, kind) in [
            (E::LeaseKeepAliveError("lease not found".into()), F::LeaseGone),
            (E::LeaseKeepAliveError("channel closed".into()), F::Broken),
            (E::WatchError("channel closed".into()), F::Broken),
            (E::IoError(std::io::ErrorKind::BrokenPipe.into()), F::Broken),
            (E::Internal("..".into()), F::Broken),
            (E::InvalidArgs("empty endpoints".into()), F::Rejected),
        ] {
            assert_eq!(kind_of(&error), kind, "{error}");
        }
    }
}
