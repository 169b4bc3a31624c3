//! Whether pushes still come.

use std::sync::{Arc, OnceLock};

use sqlx::PgConnection;
use tokio::{sync::Notify, task::AbortHandle};

use crate::wire::hosts::Hosts;

/// The means to listen to pushes.
pub(crate) struct Pushes {
    pub(crate) hosts: Arc<Hosts<PgConnection>>,
    pub(crate) doubts: Arc<Doubts>,
    /// The task that listens: it ends when the client ends.
    pub(crate) task: OnceLock<AbortHandle>,
}

/// Doubts whether pushes still come.
#[derive(Debug, Default)]
pub(crate) struct Doubts {
    /// Rings when another connection broke: this one may be broken, too.
    pub(crate) broken: Notify,
    /// Rings from time to time: only a missing answer shows that the other end of a connection is
    /// gone.
    pub(crate) silent: Notify,
}
