//! The state that all parts of one client share.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use crate::{
    election::observers::Observers,
    layout::{floor::Floor, key_slots::Slots, keys::Keys},
    queue::watcher::Watcher,
    session::pool::Sessions,
    wire::connection::Connection,
};

/// One client's connection, sessions and watches.
#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) layout: Keys,
    pub(crate) connection: Arc<Connection>,
    pub(crate) floor: Arc<Floor>,
    pub(crate) slots: Arc<Slots>,
    pub(crate) sessions: Arc<Sessions>,
    pub(crate) watcher: Arc<Watcher>,
    pub(crate) observers: Arc<Observers>,
    pub(crate) runtime: Handle,
    /// Cancelled when the client is closed or dropped: nothing is observed any more.
    pub(crate) closed: CancellationToken,
}
