//! Bare reads and writes from a side, to see what a node still does.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use lock_lab::Side;
use tokio::time::timeout;

use crate::Failure;

/// How long a node may be silent until that counts as no answer.
pub(crate) const LIMIT: Duration = Duration::from_secs(3);

/// One key of a store, seen from one node.
#[async_trait]
pub(crate) trait Probe: Send + Sync {
    /// Writes it.
    async fn write(&self, value: &'static str) -> Result<(), Failure>;

    /// Reads it as the node itself knows it, or as a majority does.
    async fn read(&self, of_majority: bool) -> Result<String, Failure>;
}

/// Does something on a side, for a limited time.
pub(crate) async fn limited<T: Send + 'static>(
    side: &Arc<Side>,
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    side.run(async move { timeout(LIMIT, work).await.map_err(|_| "no answer within 3 s")? }).await
}
