//! The token floor, as a session knows it.
//!
//! Its record is the data of one node, which each session watches. A server applies transactions in
//! order, and tells a session of a change before any later answer. So a session that gets an answer
//! about a node from after a raise has been told of the raise: that costs no request.

use std::pin::Pin;

use zookeeper_client::WatchedEvent;

use crate::layout::floor::Above;

/// The record that a session has read, and the end of its watch.
pub(super) struct Seen {
    pub(super) above: Above,
    pub(super) changed: Pin<Box<dyn Future<Output = WatchedEvent> + Send>>,
}
