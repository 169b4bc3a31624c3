//! Converts the client's errors to ours.

use std::error::Error as _;

use lock_core::{BoxError, Effect, Error, duration::shown};
use tonic::{Code, Status};

/// The name of the store in errors and events.
pub(crate) const STORE: &str = "etcd";

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
    pub(crate) fn silent(limit: std::time::Duration) -> Self {
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

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.source.fmt(f)
    }
}

impl From<etcd_client::Error> for Failure {
    fn from(error: etcd_client::Error) -> Self {
        Self { kind: kind_of(&error), source: shorten(error) }
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

/// The client's text when it does not accept an answer. The request was carried out.
const ANSWER_TOO_LARGE: &str = "decoded message length too large";

fn kind_of_status(status: &Status) -> FailureKind {
    let says = |text: &str| status.message().contains(text);
    match status.code() {
        // The end of a connection may have other codes: ENHANCE_YOUR_CALM is ResourceExhausted.
        _ if says("h2 protocol error") => FailureKind::Broken,
        // The client's text when no connection could be made.
        Code::Unavailable if says("tcp connect error") || says("dns error") => FailureKind::Refused,
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
        Code::InvalidArgument
        | Code::FailedPrecondition
        | Code::NotFound
        | Code::AlreadyExists
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::ResourceExhausted
        | Code::DataLoss => match is_refusal(status) {
            true => FailureKind::Rejected,
            false => FailureKind::Unclear,
        },
        // Unavailable, Unknown, Cancelled, DeadlineExceeded, Aborted, Internal: a transport that
        // broke or a cluster without a leader. The request may have been carried out.
        _ => FailureKind::Broken,
    }
}

/// Whether etcd says that it did nothing, or its gRPC server says that it has not passed the
/// request on. If the space is exceeded, etcd says so also after it has acted.
fn is_refusal(status: &Status) -> bool {
    let says = |text: &str| status.message().contains(text);
    let unread = status.code() == Code::Unimplemented || says("received message larger than max");
    unread || (says("etcdserver: ") && !says("space exceeded"))
}

/// The server's message, or the client's with its last cause, without the client's dump of headers.
fn shorten(error: etcd_client::Error) -> BoxError {
    match error {
        etcd_client::Error::GRpcStatus(status) => {
            let told = format!("{} ({:?})", status.message(), status.code());
            match std::iter::successors(status.source(), |error| (*error).source()).last() {
                Some(cause) => format!("{told}: {cause}").into(),
                None => told.into(),
            }
        }
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn status(code: Code, text: &str) -> etcd_client::Error {
        etcd_client::Error::GRpcStatus(Status::new(code, text))
    }

    #[test]
    fn each_client_error_has_its_kind() {
        use etcd_client::Error as E;
        let rows = [
            (status(Code::Unavailable, "tcp connect error"), FailureKind::Refused),
            (status(Code::Unavailable, "dns error"), FailureKind::Refused),
            (status(Code::Unavailable, "etcdserver: no leader"), FailureKind::Broken),
            (status(Code::Unavailable, "etcdserver: request timed out"), FailureKind::Broken),
            (status(Code::Unavailable, "etcdserver: leader changed"), FailureKind::Broken),
            (status(Code::Unknown, "h2 protocol error"), FailureKind::Broken),
            (status(Code::Cancelled, "Timeout expired"), FailureKind::Broken),
            (status(Code::DeadlineExceeded, "context deadline exceeded"), FailureKind::Broken),
            (status(Code::Internal, "stream reset"), FailureKind::Broken),
            (status(Code::ResourceExhausted, "etcdserver: too many requests"), FailureKind::Busy),
            (
                status(Code::ResourceExhausted, "etcdserver: mvcc: database space exceeded"),
                FailureKind::Unclear,
            ),
            (
                status(Code::ResourceExhausted, "grpc: received message larger than max (9 vs. 8)"),
                FailureKind::Rejected,
            ),
            (
                status(Code::ResourceExhausted, "trying to send message larger than max (9 vs. 8)"),
                FailureKind::Unclear,
            ),
            (
                status(
                    Code::ResourceExhausted,
                    "h2 protocol error: .. calm down ..; ENHANCE_YOUR_CALM",
                ),
                FailureKind::Broken,
            ),
            (status(Code::PermissionDenied, "h2 protocol error: .."), FailureKind::Broken),
            (
                status(Code::OutOfRange, "Error, decoded message length too large: found 9 bytes"),
                FailureKind::Unclear,
            ),
            (status(Code::FailedPrecondition, "some proxy's words"), FailureKind::Unclear),
            (
                status(Code::NotFound, "etcdserver: requested lease not found"),
                FailureKind::LeaseGone,
            ),
            (
                status(Code::InvalidArgument, "etcdserver: revision of auth store is old"),
                FailureKind::LoggedOut,
            ),
            (status(Code::PermissionDenied, "etcdserver: permission denied"), FailureKind::Denied),
            (status(Code::Unauthenticated, "etcdserver: invalid auth token"), FailureKind::Denied),
            (
                status(Code::InvalidArgument, "etcdserver: authentication failed, invalid .."),
                FailureKind::Denied,
            ),
            (status(Code::InvalidArgument, "etcdserver: user name is empty"), FailureKind::Denied),
            (
                status(Code::FailedPrecondition, "etcdserver: authentication is not enabled"),
                FailureKind::Denied,
            ),
            (
                status(Code::InvalidArgument, "etcdserver: request is too large"),
                FailureKind::Rejected,
            ),
            (
                status(Code::FailedPrecondition, "etcdserver: lease already exists"),
                FailureKind::Rejected,
            ),
            (
                status(Code::OutOfRange, "etcdserver: mvcc: required revision has been compacted"),
                FailureKind::Rejected,
            ),
            (status(Code::Unimplemented, "unknown service"), FailureKind::Rejected),
            (status(Code::DataLoss, "etcdserver: corrupt cluster"), FailureKind::Rejected),
            (E::LeaseKeepAliveError("lease not found".into()), FailureKind::LeaseGone),
            (E::LeaseKeepAliveError("channel closed".into()), FailureKind::Broken),
            (E::WatchError("channel closed".into()), FailureKind::Broken),
            (E::IoError(std::io::ErrorKind::BrokenPipe.into()), FailureKind::Broken),
            (E::Internal("..".into()), FailureKind::Broken),
            (E::InvalidArgs("empty endpoints".into()), FailureKind::Rejected),
        ];
        for (error, kind) in rows {
            assert_eq!(kind_of(&error), kind, "{error}");
        }
    }

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
