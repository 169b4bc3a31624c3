//! The connection for pushes.

use std::sync::{Arc, OnceLock};

use sqlx::PgConnection;
use tokio::{sync::Notify, task::AbortHandle};

use crate::wire::hosts::Hosts;

/// The means to listen to pushes.
pub(crate) struct Pushes {
    pub(crate) hosts: Arc<Hosts<PgConnection>>,
    /// Rings when another connection broke: this one may be broken, too.
    pub(crate) broken: Arc<Notify>,
    /// The task that listens: it ends when the client ends.
    pub(crate) task: OnceLock<AbortHandle>,
}
