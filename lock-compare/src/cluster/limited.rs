//! Work on a side that may never be answered.

use std::{sync::Arc, time::Duration};

use lock_lab::Side;
use tokio::time::timeout;

use crate::Failure;

/// How long a node may be silent until that counts as no answer.
const LIMIT: Duration = Duration::from_secs(3);

/// Does something on a side, for a limited time.
pub(super) async fn limited<T: Send + 'static>(
    side: &Arc<Side>,
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    side.run(async move { timeout(LIMIT, work).await.map_err(|_| "no answer within 3 s")? }).await
}
