//! A connection for requests that replicas must have.

use crate::wire::connection::Connection;

/// A connection for one request at a time.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) connection: Connection,
    /// The number of the node's connection when it was made: both have the same server.
    pub(super) of: u64,
}
