//! The client of one member of the cluster.

use std::{sync::Arc, time::Duration};

use etcd_client::Client;
use tokio_util::sync::CancellationToken;

/// How long a request may stay unanswered. Far above what a busy member takes, and short enough for
/// several tries within a TTL.
pub(crate) const ANSWER_LIMIT: Duration = Duration::from_secs(2);

/// The client of one member.
pub(crate) struct Member {
    /// Counts the changes of member; streams of an older one are given up.
    pub(crate) generation: u64,
    pub(crate) endpoint: Arc<str>,
    /// Its clients for keys, leases and so on share one connection.
    pub(crate) client: Client,
    /// Cancelled when the member is left because it failed: its requests are sent to another one.
    pub(crate) left: CancellationToken,
}
