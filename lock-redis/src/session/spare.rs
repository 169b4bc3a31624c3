//! A connection for requests that replicas must have.

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::wire::connection::Connection;

/// The most such requests of one share at a time. A server has room for some thousand connections of
/// all its clients.
const MOST: usize = 16;

/// Which requests share their permits: renewals do not wait behind others.
#[derive(Clone, Copy, Debug)]
pub(super) enum Share {
    Renewals,
    Others,
}

/// Permits of requests that replicas must have. Each has a connection for itself.
#[derive(Debug)]
pub(super) struct Permits {
    renewals: Semaphore,
    others: Semaphore,
}

impl Permits {
    /// Waits for a permit.
    pub(super) async fn of(&self, share: Share) -> Option<SemaphorePermit<'_>> {
        let permits = match share {
            Share::Renewals => &self.renewals,
            Share::Others => &self.others,
        };
        // They are never closed.
        permits.acquire().await.ok()
    }
}

impl Default for Permits {
    fn default() -> Self {
        Self { renewals: Semaphore::new(MOST), others: Semaphore::new(MOST) }
    }
}

/// A connection for one request at a time.
#[derive(Debug)]
pub(super) struct Spare {
    pub(super) connection: Connection,
    /// The number of the node's connection when it was made: both have the same server.
    pub(super) of: u64,
}
