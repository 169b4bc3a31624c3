//! Why a request has no answer.

use redis::RedisError;

/// The reason why there is no answer. It decides whether the caller tries again.
#[derive(Debug)]
pub(crate) enum Failure {
    Closed,
    /// Not sent: there is no connection now.
    Down(RedisError),
    /// Perhaps sent, and perhaps executed.
    Lost(RedisError),
    /// The server refused it.
    Refused(RedisError),
    /// Executed, but only this many replicas have the change.
    Short(u32),
}
