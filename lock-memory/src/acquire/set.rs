//! Several locks by one request.

use std::sync::Arc;

use lock_core::{Lease, Result, Wish};

use crate::{MemoryStore, session::Session, store::state::Grant};

impl Session {
    pub(crate) async fn try_all(
        self: &Arc<Self>,
        wishes: Vec<Wish>,
    ) -> Result<Option<Vec<Box<dyn Lease>>>> {
        self.check_open()?;
        let ttl = wishes.iter().map(|(request, _)| request.ttl).min().unwrap_or_default();
        let all: Vec<_> =
            wishes.iter().map(|(request, attempt)| self.asked(request, attempt)).collect();
        let leave = |store: &MemoryStore| {
            all.iter().for_each(|asked| store.leave(&asked.name, asked.attempt));
        };
        match self.request("acquire", ttl, |store| store.try_all(&all)).await {
            Ok(Some(grants)) => {
                let lease = |((request, attempt), grant): (&Wish, Grant)| {
                    self.lease_of(request, attempt, grant)
                };
                let leases = wishes.iter().zip(grants).map(lease).collect::<Result<_>>();
                // The session has been closed meanwhile.
                if leases.is_err() {
                    leave(&self.client.store);
                }
                leases.map(Some)
            }
            Ok(None) => Ok(None),
            Err(error) => {
                self.request("leave", ttl, leave).await?;
                Err(error)
            }
        }
    }
}
