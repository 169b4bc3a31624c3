//! Starts a client: its connection, and its tasks in the background.

use std::{sync::Arc, time::Duration};

use lock_core::{Clock, Instant, Result, keep::due};
use uuid::Uuid;

use super::{Session, neighbours};
#[cfg(feature = "postgres")]
use crate::queue::pushes;
use crate::{config::SqlConfig, queue::next::PAUSES, wire::open::open};

impl Session {
    /// Connects, once, and starts the tasks that renew and look.
    pub(crate) async fn start(config: &SqlConfig) -> Result<Arc<Self>> {
        let database = open(config).await?;
        let session = Arc::new(Self {
            id: Uuid::new_v4(),
            book: Default::default(),
            observers: Default::default(),
            neighbours: database.known_as().map(neighbours::of),
            renewal_bell: database.moved(),
            look_bell: Arc::default(),
            database,
            entrances: Default::default(),
            busy: Arc::default(),
            departures: Default::default(),
            look_pauses: PAUSES.into(),
        });
        session.join();
        // They end when the session is gone.
        tokio::spawn(due::run(
            Clock::Boot,
            Arc::downgrade(&session),
            session.renewal_bell.clone(),
            Duration::ZERO,
            |session: &Self| match session.has_moved() {
                true => Instant::default(),
                false => session.book().attempts.next_due(),
            },
            |session| async move { session.renew_due().await },
        ));
        tokio::spawn(due::run(
            Clock::Boot,
            Arc::downgrade(&session),
            session.look_bell.clone(),
            // What has just begun to wait does not look at once by itself: nothing is
            // new yet.
            Duration::ZERO,
            |session: &Self| session.book().next_look(),
            |session| async move { session.look().await },
        ));
        Ok(session)
    }

    /// Listens to pushes from now on. A client that neither waits nor holds needs no connection for
    /// that. What came before is caught up when it listens.
    pub(crate) fn listen(self: &Arc<Self>) {
        #[cfg(feature = "postgres")]
        if let Some(pushes) = self.database.pushes() {
            let run = || tokio::spawn(pushes::run(self, pushes)).abort_handle();
            let task = pushes.task.get_or_init(run);
            // A close that begins later finds the task.
            if self.book().attempts.is_closed() {
                task.abort();
            }
        }
    }
}
