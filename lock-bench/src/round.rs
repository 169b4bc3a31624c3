//! What is known of one round.

use std::time::Duration;

use crate::{
    Turn,
    counted::{Counted, Standing},
};

#[derive(Default)]
pub(crate) struct Round {
    /// In the order of their grants.
    pub turns: Vec<Turn>,
    /// Processor time of all clients.
    pub client_cpu: Duration,
    /// Processor time of the server, if it is ours.
    pub server_cpu: Option<Duration>,
    pub counted: Counted,
    pub standing: Standing,
}
