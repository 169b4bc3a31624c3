//! The votes that are to be taken back from a node.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use lock_core::{Clock, Instant};
use tokio::sync::watch;

use super::super::fault::Fault;
use crate::wire::call::Call;

/// The greatest number of requests that are remembered. The oldest go first, and their votes end
/// with their TTL.
const MOST: usize = 4096;

/// What a node owes.
#[derive(Debug, Default)]
pub(in super::super) struct Debts {
    pub(in super::super) waiting: VecDeque<Debt>,
    /// Whether a task takes votes back.
    pub(in super::super) is_working: bool,
}

/// A vote that is to be taken back: the node may have it, or may get it from a request that was
/// sent to it.
#[derive(Debug)]
pub(in super::super) struct Debt {
    pub(in super::super) call: Arc<Call>,
    pub(in super::super) ttl: Duration,
    pub(in super::super) given_up: Instant,
    /// The number of the connection on which the request for the vote may still lie.
    pub(in super::super) connection: u64,
    /// When the vote is over, if that is known.
    ///
    /// A server that is stalled may act on a request long after the client has given it up, and the
    /// vote then lasts for a whole TTL. So a TTL counts from when the server has answered on that
    /// connection, or a newer connection has ended it.
    pub(in super::super) until: Option<Instant>,
    /// A close waits for the first request, if the node is there.
    pub(in super::super) under_way: Option<watch::Receiver<()>>,
}

impl Debt {
    /// Whether the vote may last after a request to take it back has failed, on the connection with
    /// this number.
    pub(in super::super) fn lasts(&mut self, fault: &Fault, connection: u64) -> bool {
        let now = Clock::Boot.now();
        if connection > self.connection || fault.is_answer() {
            self.until.get_or_insert(now + self.ttl);
        }
        self.under_way = None;
        self.until.is_none_or(|until| until > now)
    }
}

impl Debts {
    pub(in super::super) fn put(&mut self, debt: Debt) {
        if self.waiting.len() >= MOST {
            self.waiting.pop_front();
        }
        self.waiting.push_back(debt);
    }
}
