//! Taking votes back from a node, with one task at most.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use lock_core::{
    Clock,
    keep::{backoff::Backoff, poison::lock},
};
use tokio::sync::watch;

use super::node::{Debt, Debts, Node};
use crate::wire::call::Call;

/// The time limit of one request.
pub(super) const LIMIT: Duration = Duration::from_secs(1);
/// The pauses before requests that failed are sent again.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(1);
/// How many requests are under way at the same time: votes must not wait behind them.
const AT_ONCE: usize = 32;

impl Node {
    /// Takes a vote back, by this call, as soon as the node can be reached.
    pub(super) fn owe(
        self: &Arc<Self>,
        call: Arc<Call>,
        ttl: Duration,
        under_way: watch::Receiver<()>,
    ) {
        let (given_up, connection) = (Clock::Boot.now(), self.tried());
        let under_way = Some(under_way).filter(|_| self.is_up());
        let debt = Debt { call, ttl, given_up, connection, until: None, under_way };
        let mut debts = lock(&self.debts);
        debts.put(debt);
        if !debts.is_working {
            debts.is_working = true;
            tokio::spawn(work(self.clone()));
        }
    }

    /// Takes the next debts; `None` if there is none, and then the work is over.
    fn next_debts(&self) -> Option<Vec<Debt>> {
        let mut debts = lock(&self.debts);
        let count = debts.waiting.len().min(AT_ONCE);
        debts.is_working = count > 0;
        (count > 0).then(|| debts.waiting.drain(..count).collect())
    }

    /// Sends a request for each debt. Those that fail are remembered. Returns whether none has.
    async fn pay(self: &Arc<Self>, debts: Vec<Debt>) -> bool {
        let connection = self.connected();
        let pay = async |mut debt: Debt| {
            let (number, answer) = match &connection {
                Ok(up) => (up.number, self.call(up, &debt.call, LIMIT).await),
                Err(fault) => (0, Err(fault.clone())),
            };
            let fault = answer.err()?;
            debt.lasts(&fault, number).then_some(debt)
        };
        let failed: Vec<_> = join_all(debts.into_iter().map(pay)).await;
        let failed: Vec<_> = failed.into_iter().flatten().collect();
        let none = failed.is_empty();
        let mut debts = lock(&self.debts);
        failed.into_iter().for_each(|debt| debts.put(debt));
        none
    }

    /// Whether a vote may still be there that was given up less than a TTL ago.
    fn has_young_debts(&self) -> bool {
        let now = Clock::Boot.now();
        lock(&self.debts).waiting.iter().any(|debt| debt.given_up + debt.ttl > now)
    }
}

/// Works until nothing is owed. A client that is gone keeps no connection for this, except for
/// votes that last.
async fn work(node: Arc<Node>) {
    let (mut backoff, weak, mut held) =
        (Backoff::new(FIRST, LONGEST), Arc::downgrade(&node), Some(node));
    while let Some(node) = held.take().or_else(|| weak.upgrade()) {
        if !node.is_up() {
            lock(&node.debts).waiting.iter_mut().for_each(|debt| debt.under_way = None);
            node.until_up(LONGEST, None).await;
        }
        if node.is_closed() {
            *lock(&node.debts) = Debts::default();
            return;
        }
        if node.is_up() {
            let Some(debts) = node.next_debts() else { return };
            match node.pay(debts).await {
                true => backoff = Backoff::new(FIRST, LONGEST),
                false => backoff.wait().await,
            }
        }
        held = node.has_young_debts().then_some(node);
    }
}
