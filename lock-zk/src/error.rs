//! The meaning of the client crate's errors.

use lock_core::{
    BoxError, Effect, Error,
    keep::errors::{self, denied, rejected, reworded},
};
use zookeeper_client::Error as ZkError;

pub(crate) const STORE: &str = "zookeeper";

/// The meaning of an error for the failed request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Meaning {
    /// The server answered, and did not do it.
    Answered,
    /// The server answered: this login may not do it.
    Denied,
    /// It is not known whether it was done.
    Unanswered,
    /// It was not done, but may succeed later.
    NotNow,
    /// The session is over, and everything that it owned goes with it.
    Over,
    /// It was not done, and never will be in this form.
    Refused,
}

/// Returns what an error means. The client reports a broken connection as any of five errors,
/// unlike its documentation: a closed one is `ConnectionLoss`, a reset or silent one `Custom`.
pub(crate) fn meaning(error: &ZkError) -> Meaning {
    match error {
        ZkError::NoNode | ZkError::NodeExists | ZkError::NotEmpty | ZkError::BadVersion => {
            Meaning::Answered
        }
        ZkError::NoAuth | ZkError::AuthFailed | ZkError::InvalidAcl => Meaning::Denied,
        // A request over an old connection of a session that has moved to another server.
        ZkError::SessionMoved => Meaning::NotNow,
        ZkError::NoHosts | ZkError::NotReadOnly | ZkError::Throttled => Meaning::NotNow,
        ZkError::SessionExpired | ZkError::ClientClosed => Meaning::Over,
        ZkError::BadArguments(_)
        | ZkError::MarshallingError
        | ZkError::NoChildrenForEphemerals
        | ZkError::QuotaExceeded
        | ZkError::Unimplemented
        | ZkError::UnexpectedErrorCode(_) => Meaning::Refused,
        // ConnectionLoss, Custom, Timeout, UnexpectedError, UnmarshalError, and errors that are not
        // known yet.
        _ => Meaning::Unanswered,
    }
}

/// Whether the same request may succeed if it is sent again in the same session.
pub(crate) fn may_succeed_later(error: &ZkError) -> bool {
    matches!(meaning(error), Meaning::Unanswered | Meaning::NotNow)
}

/// Whether the server answered with this error, and so received the request. Of a write, the leader
/// has then found the session alive: it looks for the session first, and for permissions after that
/// (`PrepRequestProcessor`). A majority confirms its refusals, too.
pub(crate) fn is_an_answer(error: &ZkError) -> bool {
    meaning(error) == Meaning::Answered || matches!(error, ZkError::NoAuth)
}

/// Our error for a failed request that changes nothing.
pub(crate) fn read_failed(op: &'static str, error: ZkError) -> Error {
    failed(op, Effect::None, error)
}

/// Our error for a failed request that changes the store.
pub(crate) fn write_failed(op: &'static str, error: ZkError) -> Error {
    failed(op, Effect::Unknown, error)
}

fn failed(op: &'static str, unanswered: Effect, error: ZkError) -> Error {
    match meaning(&error) {
        Meaning::Denied => forbidden(op, &format!("{} below the prefix", right(op)), error),
        Meaning::Answered | Meaning::Refused => rejected(STORE, op, Effect::None, error),
        Meaning::NotNow => unavailable(op, Effect::None, error),
        Meaning::Over | Meaning::Unanswered => unavailable(op, unanswered, error),
    }
}

/// Our error for a request that needs this right, since ZooKeeper does not name it. It knows no
/// wrong password either: with it, a client is another user without rights.
pub(crate) fn forbidden(op: &'static str, right: &str, error: ZkError) -> Error {
    let text = format!("{error}: the password is wrong, or the user may not {right}");
    denied(STORE, op, reworded(text, error))
}

/// The right that a request needs.
fn right(op: &str) -> &'static str {
    match op {
        "create" | "create the locks' directory" => "create nodes",
        "delete" => "delete nodes",
        "write" => "write nodes",
        "token floor" => "read %floor",
        _ => "read nodes",
    }
}

pub(crate) fn unavailable(op: &'static str, effect: Effect, source: impl Into<BoxError>) -> Error {
    errors::unavailable(STORE, op, effect, source)
}

/// The result of an attempt whose caller has left: no caller reads it.
pub(crate) fn cancelled() -> Error {
    unavailable("acquire", Effect::None, "the caller has left")
}

/// The error of a waiter that lost its place, since its node was deleted.
pub(crate) fn vanished() -> Error {
    Error::place_lost(STORE)
}

#[cfg(test)]
mod tests {
    use zookeeper_client::MultiWriteError;

    use super::*;

    #[test]
    fn each_error_has_its_meaning() {
        use ZkError::*;
        let rows = [
            (Meaning::Answered, vec![NoNode, NodeExists, NotEmpty, BadVersion]),
            (Meaning::Denied, vec![NoAuth, AuthFailed, InvalidAcl]),
            (Meaning::NotNow, vec![NoHosts, NotReadOnly, Throttled, SessionMoved]),
            (Meaning::Over, vec![SessionExpired, ClientClosed]),
            (Meaning::Refused, vec![BadArguments(&"x"), MarshallingError, NoChildrenForEphemerals]),
            (Meaning::Refused, vec![QuotaExceeded, Unimplemented, UnexpectedErrorCode(-99)]),
            (Meaning::Unanswered, vec![ConnectionLoss, Timeout, UnexpectedError("x".to_owned())]),
            (Meaning::Unanswered, vec![RuntimeInconsistent]),
        ];
        for (expected, errors) in rows {
            for error in errors {
                assert_eq!(meaning(&error), expected, "{error:?}");
            }
        }
    }

    /// The leader refuses each write of it, so it is no proof that the leader still has the
    /// session.
    #[test]
    fn a_transaction_that_is_refused_because_the_session_is_over_is_no_answer() {
        let refused = |source| ZkError::from(MultiWriteError::OperationFailed { index: 0, source });
        assert!(is_an_answer(&refused(ZkError::NoNode)));
        assert!(is_an_answer(&refused(ZkError::NoAuth)));
        assert!(!is_an_answer(&refused(ZkError::SessionExpired)));
        assert_eq!(meaning(&refused(ZkError::SessionExpired)), Meaning::Over);
        // The connection ends with it.
        assert!(!is_an_answer(&ZkError::AuthFailed));
    }

    #[test]
    fn an_unanswered_write_says_so() {
        let write = write_failed("create", ZkError::ConnectionLoss);
        assert!(matches!(write, Error::Unavailable { effect: Effect::Unknown, .. }), "{write:?}");
        let read = read_failed("list", ZkError::ConnectionLoss);
        assert!(matches!(read, Error::Unavailable { effect: Effect::None, .. }), "{read:?}");
    }

    #[test]
    fn denied_and_rejected_are_told_apart() {
        assert!(matches!(write_failed("create", ZkError::NoAuth), Error::Denied { .. }));
        assert!(matches!(write_failed("create", ZkError::QuotaExceeded), Error::Rejected { .. }));
    }

    #[test]
    fn the_right_that_is_missing_is_named() {
        for (op, right) in [
            ("create", "create nodes below"),
            ("list", "read nodes below"),
            ("write", "write nodes below"),
            ("delete", "delete nodes below"),
            ("token floor", "read %floor below"),
        ] {
            let error = write_failed(op, ZkError::NoAuth).to_string();
            assert!(error.contains(&format!("the user may not {right} the prefix")), "{error}");
        }
    }
}
