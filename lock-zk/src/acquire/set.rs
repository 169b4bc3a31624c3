//! Several locks in one step.

use std::pin::pin;

use futures_util::future::{join_all, try_join_all};
use lock_core::{Error, Lease, Result, keep::errors::unsupported};

use crate::{
    acquire::{Acquire, attend, enter::enter_all},
    error::{STORE, vanished},
    queue::view::Ahead,
    session::attempt::Node,
    wire::requests::Lane,
};

/// With the longest names this makes a request of about 100 KiB, a tenth of what a server takes.
pub(crate) const NAMES_AT_ONCE: usize = 64;
/// A server breaks the connection of a client that sends more than 1 MiB at once
/// (`jute.maxbuffer`).
const MOST_BYTES: usize = 900_000;

/// Attempts of one caller in one session that enter their queues with one request, or not at all.
/// There is at least one, and to cancel one cancels all.
pub(crate) struct AcquireSet(pub(crate) Vec<Acquire>);

impl AcquireSet {
    /// Takes all locks, or returns `None`. In that case, and if it fails, the attempts leave
    /// nothing in the store.
    pub(crate) async fn run(&self) -> Result<Option<Vec<Box<dyn Lease>>>> {
        let Self(all) = self;
        let Acquire { session, caller, .. } = &all[0];
        all.iter().for_each(|acquire| session.add(&acquire.attempt));
        let result = attend(session, caller, pin!(self.take())).await;
        if result.is_err() {
            self.leave().await;
        }
        match result {
            Err(Error::Contended { .. }) => Ok(None),
            result => result.map(Some),
        }
    }

    /// Same as [`Acquire::may_begin_again`], for all attempts.
    pub(crate) fn may_begin_again(&self) -> bool {
        self.0.iter().all(Acquire::may_begin_again)
    }

    /// Makes the same attempts anew: see [`Acquire::again`].
    pub(crate) fn again(self) -> Self {
        self.0.iter().for_each(|acquire| acquire.attempt.begin_again());
        self
    }

    async fn take(&self) -> Result<Vec<Box<dyn Lease>>> {
        self.check_size()?;
        try_join_all(self.0.iter().map(Acquire::look)).await?;
        let all: Vec<_> = self.0.iter().collect();
        let entered = enter_all(&all, Lane::Try, None).await?;
        let (nodes, lists): (Vec<_>, Vec<_>) = entered.into_iter().unzip();
        let checks = self.0.iter().zip(&nodes).zip(lists);
        let checks = checks.map(|((acquire, node), list)| acquire.check_place(node, list));
        try_join_all(checks).await?;
        // All are first by now, and only an error ends a grant again.
        let grants = self.0.iter().zip(nodes).map(|(acquire, node)| acquire.hold(node));
        try_join_all(grants).await
    }

    /// Checks that all nodes fit into one request: descriptions of holders may be long.
    fn check_size(&self) -> Result<()> {
        let size = |(path, data): (String, Vec<u8>)| path.len() + data.len();
        let bytes: usize = self.0.iter().map(|acquire| size(acquire.wanted())).sum();
        if bytes <= MOST_BYTES {
            return Ok(());
        }
        Err(unsupported(STORE, format!("take names with {bytes} bytes of data in one request")))
    }

    /// Same as [`Acquire::leave`], with one request if all nodes are known.
    async fn leave(&self) {
        let nodes: Option<Vec<_>> =
            self.0.iter().map(|acquire| Some(&*acquire.attempt.node()?.path)).collect();
        match nodes {
            Some(nodes) if self.0[0].session.remove_all(&nodes).await => {
                self.0.iter().for_each(Acquire::left);
            }
            _ => drop(join_all(self.0.iter().map(Acquire::leave)).await),
        }
    }
}

impl Acquire {
    /// Checks that a try is admitted by the list that shows its node.
    async fn check_place(&self, node: &Node, children: Vec<String>) -> Result<()> {
        let mut ahead = Ahead::new(self.attempt.request.kind);
        if !ahead.see(children, node.name(), node.sequence) {
            return Err(vanished());
        }
        self.check_at_once(&mut ahead).await
    }
}
