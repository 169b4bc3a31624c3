//! Work on a side of a network, with a time limit.

use std::{sync::Arc, time::Duration};

use lock_lab::Side;
use tokio::time::timeout;

use crate::Failure;

/// Time after which a silent node counts as one that does not answer.
const LIMIT: Duration = Duration::from_secs(3);

pub(super) async fn limited<T: Send + 'static>(
    side: &Arc<Side>,
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<T, Failure> {
    side.run(async move { timeout(LIMIT, work).await.map_err(|_| "no answer within 3 s")? }).await
}
