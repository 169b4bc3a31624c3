//! Converts the errors of the client crate.

use std::error::Error as _;

use lock_core::BoxError;
use tonic::{Code, ConnectError, Status};

use crate::{
    error::{Failure, FailureKind},
    wire::tls_error,
};

/// In the message of an etcd whose quota is used up.
const FULL: &str = "space exceeded";

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
    match error {
        etcd_client::Error::GRpcStatus(status) => {
            let mut told = format!("{} ({:?})", status.message(), status.code());
            if status.message().contains(FULL) {
                told.push_str(": compact, defragment, and then `etcdctl alarm disarm`");
            }
            tls_error::explained(match causes(&status).last() {
                Some(cause) => format!("{told}: {cause}"),
                None => told,
            })
            .into()
        }
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Code as C, FailureKind as F, *};

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
