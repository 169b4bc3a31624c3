//! From the client library's errors to ours.
//!
//! | what happened | error | effect |
//! |---|---|---|
//! | connection refused, host not found | `Unavailable` | none |
//! | connection broke, no answer in time | `Unavailable` | unknown |
//! | `LOADING`, `MASTERDOWN`, `READONLY`, `CLUSTERDOWN`, `TRYAGAIN`, `BUSY` | `Unavailable` | none |
//! | `NOAUTH`, `WRONGPASS`, `NOPERM`, a refused `HELLO` or `AUTH` | `Denied` | none |
//! | `OOM`, `NOSCRIPT`, no RESP3 | `Rejected` | none |
//! | every other answer of the server, an answer that makes no sense | `Rejected` | unknown |
//!
//! `WRONGTYPE` never gets here: to the scripts, a key of another type is a foreign holder's.

use lock_core::{BoxError, Effect, Error};
use redis::{ErrorKind, RedisError, ServerErrorKind, Value};

/// The store's name in errors and guarantees.
pub(crate) const STORE: &str = "redis";

/// Whether the connection is of no use after such an error, and the request's fate is unknown.
pub(crate) fn is_broken(error: &RedisError) -> bool {
    error.is_connection_dropped() || error.is_timeout() || error.is_io_error()
}

/// Whether the server says that the same request may succeed soon.
pub(crate) fn is_passing(error: &RedisError) -> bool {
    use ServerErrorKind::{BusyLoading, ClusterDown, MasterDown, ReadOnly, TryAgain};
    match error.kind() {
        ErrorKind::Server(BusyLoading | ClusterDown | MasterDown | ReadOnly | TryAgain) => true,
        _ => error.code() == Some("BUSY"),
    }
}

/// Whether no patience helps.
pub(crate) fn is_denied(error: &RedisError) -> bool {
    let refused = [ErrorKind::AuthenticationFailed, ErrorKind::Server(ServerErrorKind::NoPerm)];
    refused.contains(&error.kind())
        || matches!(error.code(), Some("NOAUTH" | "WRONGPASS" | "NOPERM"))
}

/// The table above.
pub(crate) fn convert(op: &'static str, error: RedisError) -> Error {
    if is_denied(&error) {
        return Error::Denied { store: STORE, op, source: error.into() };
    }
    if is_passing(&error) || error.is_connection_refusal() {
        return unavailable(op, Effect::None, error);
    }
    if is_broken(&error) {
        return unavailable(op, Effect::Unknown, error);
    }
    let untouched = matches!(error.code(), Some("OOM" | "NOSCRIPT"))
        || matches!(error.kind(), ErrorKind::RESP3NotSupported | ErrorKind::InvalidClientConfig);
    let effect = if untouched { Effect::None } else { Effect::Unknown };
    Error::Rejected { store: STORE, op, effect, source: error.into() }
}

pub(crate) fn unavailable(op: &'static str, effect: Effect, source: impl Into<BoxError>) -> Error {
    Error::Unavailable { store: STORE, op, effect, source: source.into() }
}

/// The same error for one more caller.
pub(crate) fn again(error: &Error) -> Error {
    match error {
        Error::Unavailable { op, effect, source, .. } => {
            unavailable(op, *effect, source.to_string())
        }
        Error::Denied { op, source, .. } => {
            Error::Denied { store: STORE, op, source: source.to_string().into() }
        }
        Error::Rejected { op, effect, source, .. } => {
            let source = source.to_string().into();
            Error::Rejected { store: STORE, op, effect: *effect, source }
        }
        _ => closed(),
    }
}

pub(crate) fn closed() -> Error {
    Error::Closed { store: STORE }
}

/// For an attempt that somebody or something else has removed from the queue.
pub(crate) fn gone() -> Error {
    Error::PlaceLost { store: STORE }
}

/// A script's answer that it cannot have given.
pub(crate) fn unexpected(op: &'static str, value: &Value) -> Error {
    let source = format!("unexpected answer {value:?}").into();
    Error::Rejected { store: STORE, op, effect: Effect::Unknown, source }
}

#[cfg(test)]
mod tests {
    use std::io;

    use redis::{make_extension_error, parse_redis_value};

    use super::*;

    fn said(line: &str) -> RedisError {
        let reply = parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
        reply.extract_error().unwrap_err()
    }

    fn io(kind: io::ErrorKind) -> RedisError {
        io::Error::from(kind).into()
    }

    #[test]
    fn every_row_of_the_table() {
        use Effect::{None, Unknown};
        let rows = [
            (io(io::ErrorKind::ConnectionRefused), "unavailable", None),
            (io(io::ErrorKind::ConnectionReset), "unavailable", Unknown),
            (io(io::ErrorKind::BrokenPipe), "unavailable", Unknown),
            (io(io::ErrorKind::TimedOut), "unavailable", Unknown),
            (said("LOADING Redis is loading the dataset in memory"), "unavailable", None),
            (said("MASTERDOWN Link with MASTER is down"), "unavailable", None),
            (said("READONLY You can't write against a read only replica."), "unavailable", None),
            (said("CLUSTERDOWN The cluster is down"), "unavailable", None),
            (said("TRYAGAIN Multiple keys request during rehashing"), "unavailable", None),
            (said("BUSY Redis is busy running a script"), "unavailable", None),
            (said("NOAUTH Authentication required."), "denied", None),
            (said("WRONGPASS invalid username-password pair"), "denied", None),
            (said("NOPERM this user has no permissions"), "denied", None),
            (said("OOM command not allowed when used memory > 'maxmemory'."), "rejected", None),
            (said("NOSCRIPT No matching script."), "rejected", None),
            (said("ERR unknown command"), "rejected", Unknown),
            (make_extension_error("ODD".into(), Option::None), "rejected", Unknown),
        ];
        for (error, kind, effect) in rows {
            let shown = error.to_string();
            let ours = convert("acquire", error);
            let is = match &ours {
                Error::Unavailable { .. } => "unavailable",
                Error::Denied { .. } => "denied",
                Error::Rejected { .. } => "rejected",
                _ => "else",
            };
            assert_eq!((is, ours.effect()), (kind, effect), "{shown}");
        }
    }
}
