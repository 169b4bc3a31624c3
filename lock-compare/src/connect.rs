//! Connecting on a machine that plays many experiments at a time.

use std::time::Duration;

use distlock::Locks;

/// Time for which a machine may be too busy to open a connection.
const BUSY: Duration = Duration::from_secs(20);

/// Connects, and tries again for a while if the store does not answer in time.
pub(crate) async fn connect(url: impl AsRef<str>) -> distlock::Result<Locks> {
    distlock::connect(url).retry(BUSY).await
}
