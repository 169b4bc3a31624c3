//! Converts the errors of the client crate.

use std::error::Error as _;

use lock_core::BoxError;
use tonic::{Code, Status};

use crate::error::{Failure, FailureKind};

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
}
