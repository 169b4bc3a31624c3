//! Bare reads and writes from a side, to see what a node still does.

use async_trait::async_trait;

use crate::Failure;

/// One key of a store, seen from one node.
#[async_trait]
pub(crate) trait Probe: Send + Sync {
    async fn write(&self, value: &'static str) -> Result<(), Failure>;

    /// Reads the key: the node's own value, or a majority's.
    async fn read(&self, of_majority: bool) -> Result<String, Failure>;
}
