//! Starts a client: connects, and starts what works for it in the background.

use std::sync::Arc;

use lock_core::Result;
use uuid::Uuid;

use super::{
    Session, column::Column, departures::Departures, grants, neighbours::Neighbours, renewal,
    undated::Undated, waiters::Waiters,
};
#[cfg(feature = "postgres")]
use crate::queue::pushes;
use crate::{config::SqlConfig, queue::poll, wire::database::Database};

impl Session {
    /// Connects, once.
    ///
    /// # Errors
    ///
    /// Why it was not possible.
    pub(crate) async fn start(config: &SqlConfig) -> Result<Arc<Self>> {
        let (database, grants) = Database::open(config).await?;
        let id = Uuid::new_v4();
        let session = Arc::new(Self {
            id,
            waiters: Waiters::new(id),
            neighbours: database.known_as().map(Neighbours::of),
            database,
            busy: Arc::default(),
            departures: Departures::default(),
            renewal_due: Arc::default(),
            column: Column::new(grants),
            undated: Undated::default(),
        });
        session.join();
        tokio::spawn(renewal::run(Arc::downgrade(&session), session.renewal_due.clone()));
        tokio::spawn(poll::run(Arc::downgrade(&session), session.waiters.look_due.clone()));
        tokio::spawn(grants::run(Arc::downgrade(&session), session.undated.some.clone()));
        Ok(session)
    }

    /// The session is one of those that use the database.
    fn join(self: &Arc<Self>) {
        if let Some(neighbours) = &self.neighbours {
            neighbours.join(&self.waiters);
        }
        #[cfg(feature = "postgres")]
        if let Some(postgres) = self.database.pushing() {
            let task = tokio::spawn(pushes::run(self, postgres.pushes()));
            postgres.listens(task.abort_handle());
        }
    }
}
