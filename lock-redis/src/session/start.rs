//! Start and end of a client.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::future::{join, join_all};
use lock_core::{
    Clock, Error, Instant, Reach, Result,
    keep::{due, limits, wait::Waits},
};
use redis::{Cmd, RedisError};
use tokio::{
    sync::{Notify, Semaphore},
    time::timeout,
};
use uuid::Uuid;

use super::{
    Routes, Session, attempt::Attempt, book::Book, description, node::Node, redirect::keep_slots,
    retry::TURNS, slots::Slots,
};
use crate::{
    config::{Mode, RedisConfig, Target},
    election::observers::Observers,
    error,
    layout::{key::client_key, ticket::Ticket},
    wire::{
        connection::Connector,
        dial::Dial,
        lua::usual,
        sentinel::{Sentinels, Server},
    },
};

impl Session {
    /// Connects, once.
    pub(crate) async fn start(config: RedisConfig) -> Result<Arc<Self>> {
        let id = Uuid::new_v4().simple().to_string()[..Ticket::CLIENT].to_owned();
        config.check()?;
        let reach = Reach::default();
        let routes = routes(&config, &id, reach.clone()).await?;
        let session = Arc::new(Self {
            id,
            config,
            routes,
            reach,
            book: Mutex::new(Book::default()),
            turns: Semaphore::new(TURNS),
            observers: Observers::default(),
            alarm: Arc::new(Notify::new()),
        });
        session.connect_all().await.map_err(|error| error::convert("connect", error))?;
        for node in session.routes.all() {
            session.keep_connected(&node);
            if let Server::Sentinel(sentinels) = &node.connector.server {
                session.listen_to(sentinels, &node);
            }
        }
        if let Routes::Slots(slots) = &session.routes {
            tokio::spawn(keep_slots(Arc::downgrade(&session), slots.clone()));
        }
        tokio::spawn(due::run(
            Clock::Boot,
            Arc::downgrade(&session),
            session.alarm.clone(),
            Duration::ZERO,
            |session: &Self| session.book().next_due(),
            |session| async move { session.renew_due().await },
        ));
        Ok(session)
    }

    /// Connects all nodes. The others are enough if some nodes of a cluster are down.
    async fn connect_all(self: &Arc<Self>) -> Result<(), RedisError> {
        let nodes = self.routes.all();
        let connected = join_all(nodes.iter().map(|node| self.connect(node))).await;
        let is_up = connected.iter().any(Result::is_ok);
        match connected.into_iter().filter_map(Result::err).max_by_key(error::is_denied) {
            Some(error) if !is_up || error::is_denied(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Gives everything back and ends.
    pub(crate) async fn close(self: &Arc<Self>) -> Result<()> {
        let deadline = Clock::Boot.now() + limits::CLOSE;
        let mut attempts = self.book().attempts.close();
        // Waiters leave their queues from the head, where the server finds each at once. What they
        // wait for follows, so that no lock is handed over to one that leaves. Each is asked once:
        // it may be granted meanwhile.
        let waiting = attempts.iter().filter(|attempt| attempt.is_waiting());
        let waited: HashSet<_> = waiting.map(|attempt| attempt.key.clone()).collect();
        attempts.sort_by_cached_key(|it| !it.is_waiting() && waited.contains(&it.key));
        let (asking, known): (Vec<_>, Vec<_>) =
            attempts.into_iter().partition(|attempt| attempt.is_asking());
        asking.iter().chain(&known).for_each(|attempt| attempt.closed());
        let unasked = async {
            // Waits for the requests that were sent before the close. The other attempts find out
            // that they have no time any more.
            let all = self.turns.acquire_many(u32::try_from(TURNS).unwrap_or(u32::MAX));
            let _ = timeout(deadline.since(Clock::Boot.now()), all).await;
            self.withdraw_all(asking, deadline).await
        };
        let (known, unasked) = join(self.withdraw_all(known, deadline), unasked).await;
        let released = known.and(unasked);
        self.end_description().await;
        self.routes.close();
        self.observers.close();
        self.alarm.notify_one();
        match released {
            // Closed before, perhaps by another task at the same time.
            Err(Error::Closed { .. }) => Ok(()),
            result => result,
        }
    }

    async fn withdraw_all(
        self: &Arc<Self>,
        attempts: Vec<Arc<Attempt>>,
        deadline: Instant,
    ) -> Result<()> {
        let withdrawn = attempts.iter().map(|attempt| self.withdraw(attempt, deadline));
        join_all(withdrawn).await.into_iter().collect()
    }
}

/// Makes the nodes of a deployment, without connections.
async fn routes(config: &RedisConfig, id: &str, reach: Reach) -> Result<Routes> {
    let dial = Dial::new(config)?;
    let channel = (config.mode == Mode::Queue).then(|| format!("distlock:{id}"));
    let server = match &config.target {
        Target::Server(address) => Server::Fixed(address.clone()),
        Target::Sentinel { sentinels, service } => {
            let dial = Dial::of_sentinels(config)?;
            let sentinels = Sentinels::new(dial, sentinels.clone(), service.clone());
            Server::Sentinel(Arc::new(sentinels))
        }
        Target::Cluster { nodes } => {
            let slots = Slots::find(dial, channel, reach, nodes).await;
            let slots = slots.map_err(|error| error::convert("connect", error))?;
            return Ok(Routes::Slots(Arc::new(slots)));
        }
    };
    let connector = Connector { dial, server, scripts: usual(), channel };
    Ok(Routes::One(Arc::new(Node::new(connector, reach, Arc::default()))))
}

impl Drop for Session {
    fn drop(&mut self) {
        self.alarm.notify_one();
        let home = self.routes.of(&client_key(&self.id)).connection();
        self.routes.close();
        if let (Ok(connection), Ok(runtime)) = (home, tokio::runtime::Handle::try_current()) {
            let delete = Cmd::del(client_key(&self.id));
            let limit = description::WRITE_LIMIT;
            // In the background: the description expires by itself as well.
            runtime.spawn(async move { drop(connection.call(&delete.into(), limit).await) });
        }
    }
}
