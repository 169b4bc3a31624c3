//! Start and end of a client.

use std::{
    sync::{Arc, Mutex, atomic::AtomicU64},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use lock_core::{
    Clock, Error, Reach, Result,
    keep::{due, limits, wait::Waits},
};
use redis::Cmd;
use tokio::sync::{Notify, Semaphore, watch};
use uuid::Uuid;

use super::{Link, Session, book::Book, description, janitor::ALONE, reconnect};
use crate::{
    config::RedisConfig,
    election::observers::Observers,
    error,
    layout::{key::client_key, ticket::Ticket},
    wire::{
        connection::Connector,
        turns::{Lane, TURNS},
    },
};

impl Session {
    /// Connects, once.
    ///
    /// # Errors
    ///
    /// The reason why it failed, within 4 s.
    pub(crate) async fn start(config: &RedisConfig) -> Result<Arc<Self>> {
        let id = Uuid::new_v4().simple().to_string()[..Ticket::CLIENT].to_owned();
        let connect = |error| error::convert("connect", error);
        let connector = Connector::new(config, format!("distlock:{id}")).map_err(connect)?;
        let unused = std::io::Error::from(std::io::ErrorKind::NotConnected);
        let session = Arc::new(Self {
            id,
            mode: config.mode,
            database: config.database,
            connector,
            link: watch::Sender::new(Link::Down(Arc::new(unused.into()), None)),
            reach: Reach::default(),
            connections: AtomicU64::new(0),
            book: Mutex::new(Book::default()),
            alone: Semaphore::new(ALONE),
            departures: Default::default(),
            turns: Semaphore::new(TURNS),
            observers: Observers::default(),
            due: Arc::new(Notify::new()),
        });
        session.connect(None).await.map_err(connect)?;
        tokio::spawn(reconnect::keep_connected(Arc::downgrade(&session), session.link.subscribe()));
        tokio::spawn(due::run(
            Clock::Boot,
            (Arc::downgrade(&session), session.due.clone()),
            Duration::ZERO,
            |session: &Self| session.book().next_due(),
            |session| async move { session.renew_due().await },
        ));
        Ok(session)
    }

    /// Gives everything back and ends.
    ///
    /// # Errors
    ///
    /// The error of the first request that failed.
    pub(crate) async fn close(self: &Arc<Self>) -> Result<()> {
        let deadline = Clock::Boot.now() + limits::CLOSE;
        let attempts = self.book().attempts.close();
        attempts.iter().for_each(|attempt| attempt.closed());
        let released = stream::iter(attempts)
            .map(|attempt| async move { self.withdraw(&attempt, deadline).await })
            .buffer_unordered(256)
            .fold(Ok(()), |all, one| async { all.and(one) })
            .await;
        let delete = Cmd::del(client_key(&self.id));
        let (op, limit) = (("close", Lane::First), description::WRITE_LIMIT);
        let gone = self.insist(op, &delete, limit, deadline, |_| Some(())).await;
        self.link.send_replace(Link::Closed);
        self.due.notify_one();
        match released.and(gone.map(drop)) {
            // Closed before, perhaps by another task at the same time.
            Err(Error::Closed { .. }) => Ok(()),
            result => result,
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.due.notify_one();
        let Link::Up(connection) = self.link.send_replace(Link::Closed) else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let delete = Cmd::del(client_key(&self.id));
        // In the background: the description expires by itself as well.
        runtime
            .spawn(async move { drop(connection.call(&delete, description::WRITE_LIMIT).await) });
    }
}
