//! Bare reads and writes from a side, to see what a node still does.

use async_trait::async_trait;

use crate::Failure;

/// One key of a store, seen from one node.
#[async_trait]
pub(crate) trait Probe: Send + Sync {
    /// Writes it.
    async fn write(&self, value: &'static str) -> Result<(), Failure>;

    /// Reads it as the node itself knows it, or as a majority does.
    async fn read(&self, of_majority: bool) -> Result<String, Failure>;
}
