//! An entry of a queue, its grant, and the pushes to its client.

use std::{
    collections::VecDeque,
    sync::Arc,
    time::{Duration, SystemTime},
};

use lock_core::{FencingToken, Instant, Kind, Mark};
use tokio::sync::mpsc::UnboundedSender;
use uuid::Uuid;

use crate::wire::network::Network;

/// One entry of a queue.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) attempt: Uuid,
    pub(crate) kind: Kind,
    pub(crate) value: Option<Arc<[u8]>>,
    pub(crate) holder: Arc<str>,
    pub(crate) ttl: Duration,
    /// Gone at this instant unless it is renewed.
    pub(crate) expires: Instant,
    pub(crate) queued_at: SystemTime,
    pub(crate) granted: Option<Grant>,
    pub(crate) tell: UnboundedSender<Push>,
    pub(crate) network: Network,
}

/// A grant of the lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grant {
    pub(crate) token: FencingToken,
    pub(crate) at: Instant,
    pub(crate) since: SystemTime,
}

/// A push of the store to a client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Push {
    /// A waiting attempt holds the lock now.
    Granted(Uuid, Grant),
    /// The attempt's entry is gone.
    Gone(Uuid),
}

/// The mark of work that is done, and the end of its period.
#[derive(Debug)]
pub(crate) struct StoredMark {
    pub(crate) mark: Mark,
    pub(crate) expires: Instant,
}

/// Returns the place of an attempt in a queue.
pub(crate) fn place_of(entries: &VecDeque<Stored>, attempt: Uuid) -> Option<usize> {
    entries.iter().position(|entry| entry.attempt == attempt)
}
