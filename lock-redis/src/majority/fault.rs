//! Why a node's answer does not count.

use std::{fmt, io, time::Duration};

use redis::{RedisError, Value, make_extension_error};

use crate::{
    config::Address,
    error::{is_about_a_key, is_broken, is_denied, is_passing},
};

/// Why a node's answer does not count.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Fault {
    /// There is no connection, for this reason, so nothing was sent.
    Down(RedisError),
    /// The connection broke, or there was no answer in time. The request may have taken effect, or
    /// may still do so.
    Lost(RedisError),
    /// The node refused the request.
    Refused(RedisError),
    /// It voted, but its votes do not count for this long yet.
    Young(Duration),
}

/// Codes of the following errors, which no server uses.
const UNFIT: &str = "UNFIT";
const TWIN: &str = "TWIN";

/// The error for a node that cannot be used as it is.
pub(super) fn unfit(why: String) -> RedisError {
    make_extension_error(UNFIT.to_owned(), Some(why))
}

/// The error for a node that is the same server as another one of the list.
pub(super) fn twin(of: &Address) -> RedisError {
    make_extension_error(TWIN.to_owned(), Some(format!("it is the same server as {of}")))
}

impl Fault {
    /// The reason why a request has no answer that can be used.
    pub(super) fn of(error: RedisError) -> Self {
        match is_broken(&error) && !error.is_connection_refusal() {
            true => Self::Lost(error),
            false => Self::Refused(error),
        }
    }

    /// The script cannot give this answer.
    pub(super) fn odd(value: &Value) -> Self {
        Self::Refused(unfit(format!("unexpected answer {value:?}")))
    }

    /// Whether the request may have taken effect, or may still do so.
    pub(super) fn was_sent(&self) -> bool {
        match self {
            Self::Down(_) => false,
            Self::Lost(_) | Self::Young(_) => true,
            Self::Refused(_) => self.kind() == io::ErrorKind::InvalidData,
        }
    }

    /// Whether the node has answered.
    pub(super) fn is_answer(&self) -> bool {
        matches!(self, Self::Refused(_) | Self::Young(_))
    }

    /// Whether the node lacked the script, and has it now. A vote is asked for again by its attempt
    /// alone: otherwise it could come after its withdrawal.
    pub(super) fn lacked_script(&self) -> bool {
        matches!(self, Self::Refused(error) if error.code() == Some("NOSCRIPT"))
    }

    /// Whether the node is another node of the list.
    pub(super) fn is_twin(&self) -> bool {
        matches!(self, Self::Down(error) | Self::Refused(error) if error.code() == Some(TWIN))
    }

    /// The kind of error that many of these are together.
    pub(super) fn kind(&self) -> io::ErrorKind {
        let (Self::Down(error) | Self::Refused(error)) = self else {
            return io::ErrorKind::NotConnected;
        };
        let passes = is_passing(error) || is_broken(error) || self.lacked_script();
        match () {
            () if is_denied(error) => io::ErrorKind::PermissionDenied,
            () if passes || self.is_twin() => io::ErrorKind::NotConnected,
            () => io::ErrorKind::InvalidData,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = match self {
            Self::Down(error) | Self::Lost(error) | Self::Refused(error) => error,
            Self::Young(left) => {
                let left = left.as_secs() + 1;
                return write!(
                    f,
                    "it has started less than max_ttl ago, and its votes count in {left} s"
                );
            }
        };
        match error.detail().filter(|_| matches!(error.code(), Some(TWIN | UNFIT))) {
            Some(why) => f.write_str(why),
            None if is_about_a_key(error) => {
                write!(f, "{error} (the login needs ~<prefix>* and ~{{<prefix>*)")
            }
            None => error.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error;

    #[test]
    fn a_node_that_could_not_be_used_got_no_request() {
        let replica = unfit("it is a replica".to_owned());
        let unfit = Fault::of(replica.clone());
        assert!(unfit.was_sent() && unfit.is_answer(), "the answer to a request");
        let down = Fault::Down(replica);
        assert!(!down.was_sent() && !down.is_answer(), "the reason why there is no connection");
        assert_eq!(down.to_string(), "it is a replica");
        let silent = Fault::of(error::silent(Duration::from_secs(1)));
        assert!(silent.was_sent() && !silent.is_answer());
    }

    #[test]
    fn a_node_that_refuses_a_key_names_the_rights() {
        let refused = "No permissions to access a key".to_owned();
        let refused = Fault::of(make_extension_error("NOPERM".to_owned(), Some(refused)));
        assert!(refused.to_string().contains("needs ~<prefix>* and ~{<prefix>*"), "{refused}");
    }
}
