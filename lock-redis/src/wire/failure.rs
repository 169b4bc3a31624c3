//! Why a request has no answer.

use std::sync::Arc;

use redis::RedisError;

/// Why there is no answer, for the caller to try again or not.
#[derive(Debug)]
pub(crate) enum Failure {
    Closed,
    /// Not sent: there is no connection now.
    Down(Arc<RedisError>),
    /// Sent perhaps, and perhaps executed.
    Lost(RedisError),
    /// The server refused it.
    Refused(RedisError),
}
