//! A hold: its renewal and its end.

use std::sync::{Arc, Weak};

use async_trait::async_trait;
use tokio::sync::Mutex;
use uuid::Uuid;

use super::{store::PolledStore, way::Way};
use crate::{
    Error, FencingToken, Instant, Lease, LossReason, Request, Result, Validity,
    keep::renewal::RENEWALS_WITHOUT_PUSHES, validity::safe_until,
};

#[derive(Debug)]
pub(super) struct Hold<S: PolledStore> {
    way: Arc<Way<S>>,
    request: Request,
    attempt: Uuid,
    token: FencingToken,
    pub(super) validity: Validity,
    /// A renewal and a release take turns.
    turn: Mutex<()>,
}

impl<S: PolledStore> Hold<S> {
    pub(super) fn new(
        way: Arc<Way<S>>,
        request: Request,
        attempt: Uuid,
        sent: Instant,
        token: FencingToken,
    ) -> Self {
        let validity = Validity::new(&request.name, safe_until(sent, request.ttl));
        Self { way, request, attempt, token, validity, turn: Mutex::default() }
    }

    async fn renew(&self) -> Result<()> {
        let _turn = self.turn.lock().await;
        let (way, request) = (&self.way, &self.request);
        let sent = way.store.clock().now();
        if way.heard("renew", way.store.renew(request, self.attempt).await)? {
            self.validity.extend(safe_until(sent, request.ttl));
            return Ok(());
        }
        self.validity.lose(LossReason::EntryGone);
        let reason = self.validity.loss().unwrap_or(LossReason::EntryGone);
        Err(Error::Lost { name: request.name.clone(), reason })
    }

    pub(super) async fn give_back(&self) -> Result<()> {
        let _turn = self.turn.lock().await;
        self.way.remove(&self.request.name, self.attempt, self.request.ttl).await
    }
}

/// Renews a hold until it ends, or its lease is dropped.
pub(super) async fn renew<S: PolledStore>(hold: Weak<Hold<S>>) {
    while let Some(held) = hold.upgrade() {
        let (clock, pause) = (held.way.store.clock(), held.request.ttl / RENEWALS_WITHOUT_PUSHES);
        drop(held);
        clock.sleep_until(clock.now() + pause).await;
        let Some(held) = hold.upgrade().filter(|held| !held.validity.has_ended()) else { return };
        let (reach, store) = (&held.way.reach, held.way.store.guarantees().store);
        match held.renew().await {
            Ok(()) => reach.renewed(store, 1),
            Err(Error::Lost { .. }) => {}
            // An outage shows at the deadline, if it does not end before.
            Err(error) => reach.renewal_failed(store, &error),
        }
    }
}

#[derive(Debug)]
pub(super) struct PolledLease<S: PolledStore>(pub(super) Arc<Hold<S>>);

#[async_trait]
impl<S: PolledStore> Lease for PolledLease<S> {
    fn token(&self) -> FencingToken {
        self.0.token
    }

    fn validity(&self) -> &Validity {
        &self.0.validity
    }

    async fn renew(&self) -> Result<()> {
        self.0.renew().await
    }

    async fn release(&self) -> Result<()> {
        self.0.give_back().await
    }
}
