//! Start and end of a client.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{StreamExt, stream};
use lock_core::{
    Clock, Error, Reach, Result,
    keep::{due, limits, wait::Waits},
};
use redis::{Cmd, RedisError};
use tokio::sync::{Notify, Semaphore};
use uuid::Uuid;

use super::{
    Routes, Session,
    book::Book,
    description,
    janitor::ALONE,
    node::{Link, Node},
};
use crate::{
    config::{RedisConfig, Target},
    election::observers::Observers,
    error::{self, STORE},
    layout::{key::client_key, ticket::Ticket},
    wire::{
        connection::Connector,
        dial::Dial,
        sentinel::{Place, Sentinels},
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
        let dial = Dial::new(config).map_err(connect)?;
        let place = place(config)?;
        let connector = Connector::new(dial, place.clone(), config.mode, format!("distlock:{id}"));
        let reach = Reach::default();
        let node = Arc::new(Node::new(connector, reach.clone(), Arc::default()));
        let session = Arc::new(Self {
            id,
            mode: config.mode,
            database: config.database,
            wait_replicas: config.wait_replicas,
            routes: Routes::One(node.clone()),
            reach,
            book: Mutex::new(Book::default()),
            alone: Semaphore::new(ALONE),
            departures: Default::default(),
            turns: Semaphore::new(TURNS),
            observers: Observers::default(),
            due: Arc::new(Notify::new()),
        });
        session.connect(&node, None).await.map_err(connect)?;
        session.keep_connected(&node);
        if let Place::Sentinel(sentinels) = &place {
            session.listen_to(sentinels, &node);
        }
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
        self.routes.all().iter().for_each(|node| drop(node.close()));
        self.due.notify_one();
        match released.and(gone.map(drop)) {
            // Closed before, perhaps by another task at the same time.
            Err(Error::Closed { .. }) => Ok(()),
            result => result,
        }
    }
}

fn connect(error: RedisError) -> Error {
    error::convert("connect", error)
}

fn place(config: &RedisConfig) -> Result<Place> {
    match &config.target {
        Target::Server(address) => Ok(Place::Fixed(address.clone())),
        Target::Sentinel { sentinels, service } => {
            let dial = Dial::of_sentinels(config).map_err(connect)?;
            let sentinels = Sentinels::new(dial, sentinels.clone(), service.clone());
            Ok(Place::Sentinel(Arc::new(sentinels)))
        }
        target => {
            let what = format!("keep locks on {target}");
            Err(Error::Unsupported { store: STORE, what })
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.due.notify_one();
        let runtime = tokio::runtime::Handle::try_current();
        for node in self.routes.all() {
            let (Link::Up(connection), Ok(runtime)) = (node.close(), &runtime) else { continue };
            let delete = Cmd::del(client_key(&self.id));
            let limit = description::WRITE_LIMIT;
            // In the background: the description expires by itself as well.
            runtime.spawn(async move { drop(connection.call(&delete, limit).await) });
        }
    }
}
