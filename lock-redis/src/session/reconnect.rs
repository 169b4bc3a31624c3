//! Connects a client, and connects it again.

use std::{
    sync::{Arc, Weak, atomic::Ordering},
    time::Duration,
};

use lock_core::{Clock, keep::backoff::Backoff, trace};
use redis::RedisError;
use tokio::{sync::watch, time::timeout};

use super::{Link, Session, description};
use crate::{
    error::STORE,
    wire::connection::{OnPush, Peer},
};

/// Pauses between attempts to connect.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(10), Duration::from_secs(1));

impl Session {
    /// Makes a connection, and renews on it at once: anything may have changed meanwhile.
    pub(super) async fn connect(
        self: &Arc<Self>,
        previous: Option<&Peer>,
    ) -> Result<(), RedisError> {
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let weak = Arc::downgrade(self);
        let on_push: OnPush = Arc::new(move |info| {
            if let Some(session) = weak.upgrade() {
                session.pushed(number, info);
            }
        });
        let connection = self.connector.connect(number, previous, on_push).await?;
        self.describe(&connection).await?;
        self.link.send_if_modified(|link| match link {
            Link::Closed => false,
            _ => {
                *link = Link::Up(connection);
                true
            }
        });
        self.book().attempts.all_due(Clock::Boot.now());
        self.due.notify_one();
        Ok(())
    }
}

/// Connects again whenever the connection is lost, until the session is gone.
pub(super) async fn keep_connected(session: Weak<Session>, mut link: watch::Receiver<Link>) {
    let mut pause = BACKOFF;
    loop {
        let lost = link.wait_for(|link| !matches!(link, Link::Up(_)));
        // An error means that the session is gone, and then the next line returns.
        let _ = timeout(description::PERIOD, lost).await;
        let Some(session) = session.upgrade() else { return };
        let state = link.borrow().clone();
        match state {
            Link::Closed => return,
            Link::Up(connection) => {
                // A broken connection shows in the next renewal as well.
                let _ = session.describe(&connection).await;
            }
            Link::Down(_, previous) => match session.connect(previous.as_ref()).await {
                Ok(()) => {
                    trace::connected(STORE);
                    session.reach.works();
                    pause = BACKOFF;
                }
                Err(error) => {
                    session.link.send_modify(|link| {
                        if let Link::Down(why, _) = link {
                            *why = Arc::new(error);
                        }
                    });
                    drop(session);
                    pause.wait().await;
                }
            },
        }
    }
}
