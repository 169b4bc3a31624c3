//! Several locks by one request.

use std::sync::Arc;

use lock_core::{Lease, Result, Wish};

use crate::{session::Session, store::state::Grant};

impl Session {
    pub(crate) async fn try_all(
        self: &Arc<Self>,
        wishes: Vec<Wish>,
    ) -> Result<Option<Vec<Box<dyn Lease>>>> {
        self.client.check_open()?;
        let ttl = wishes.iter().map(|(request, _)| request.ttl).min().unwrap_or_default();
        let all: Vec<_> =
            wishes.iter().map(|(request, attempt)| self.asked(request, attempt)).collect();
        match self.request("acquire", ttl, |store| store.try_all(&all)).await {
            Ok(Some(grants)) => {
                let lease = |((request, attempt), grant): (&Wish, Grant)| {
                    self.lease_of(request, attempt, grant)
                };
                let leases = wishes.iter().zip(grants).map(lease).collect::<Result<_>>();
                // An error means that the session has been closed meanwhile.
                leases.map(Some).inspect_err(|_| self.client.store.leave_all(&all))
            }
            Ok(None) => Ok(None),
            Err(error) => self.undo(&all, ttl, error).await,
        }
    }
}
