//! The state of the connection to the store.

use std::time::Duration;

use futures_util::Stream;

use crate::{BoxFuture, ConnectionState, LockName, Locks, Result, api::client::Client};

/// The longest time that [`Locks::ping`] takes.
const PING_LIMIT: Duration = Duration::from_secs(5);
/// The name that [`Locks::ping`] reads.
const PING_NAME: &str = "distlock/ping";

impl Locks {
    /// Sends the store a small request and returns how long the answer took. It shows whether an
    /// acquire would be answered now. Use it for a readiness check: the health of the program
    /// itself does not depend on it. It changes nothing.
    ///
    /// | store | request | it also succeeds with |
    /// |---|---|---|
    /// | SQLite, PostgreSQL, MySQL | an update of no row: refused while the store takes no writes or another process keeps the file locked | a full disk; a login that may update and not insert |
    /// | etcd | a read that a majority confirms | a database that is full (`NOSPACE`); a login that may not write |
    /// | Redis | a script that reads | a server that refuses writes: a replica, `min-replicas-to-write` without one, no memory left |
    /// | ZooKeeper | a read from the connected server | for some time, a member that is cut off from its leader; a login that may not create |
    /// | memory | a request through the scripted network | - |
    ///
    /// A read in the table reads the queue of the name `distlock/ping`. A login that is limited to
    /// some names must be allowed to read it.
    ///
    /// ```no_run
    /// # async fn example(locks: lock_core::Locks) {
    /// match locks.ping().await {
    ///     Ok(took) => println!("ready: answered in {took:.1?}"),
    ///     Err(error) => println!("not ready: {error}"),
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`](crate::Error::Unavailable) if there is no answer within 5 s, and
    /// other errors of the store.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind. For a shorter limit, put a `timeout` around it.
    ///
    /// # Panics
    ///
    /// If it is polled outside a tokio runtime.
    pub fn ping(&self) -> BoxFuture<'_, Result<Duration>> {
        Box::pin(async move {
            let started = self.client.home.clock.now();
            let (driver, name) = (self.client.driver.clone(), LockName::new(PING_NAME)?);
            let ping = self.client.home.clone().ask(async move { driver.ping(&name).await });
            let answer = self.client.answer(PING_LIMIT, ping, "ping").await;
            answer.map_err(|error| self.client.failed("ping", error))?;
            Ok(self.client.home.clock.now().since(started))
        })
    }

    /// The state of the connection as the driver saw it last, from the answers to renewals and
    /// other requests. It sends nothing. A client that holds nothing and asks nothing notices an
    /// outage late; [`ping`](Self::ping) asks the store. A file counts as disconnected while it
    /// does not answer, and memory while a scripted fault keeps it from answering.
    pub fn connection(&self) -> ConnectionState {
        let Client { home, closed, reach, .. } = &*self.client;
        match closed.is_cancelled() || home.check().is_err() {
            true => ConnectionState::Closed,
            false => reach.now(),
        }
    }

    /// The [state of the connection](Self::connection) now, and each change from then on. If
    /// changes are faster than the reader, some may be left out, but never the last one. The stream
    /// ends after [`ConnectionState::Closed`], and does not keep the connection alive. Its `next`
    /// is that of `StreamExt`, of the crate `futures-util` or `tokio-stream`.
    ///
    /// ```no_run
    /// use futures_util::StreamExt; // futures-util = "0.3"
    ///
    /// # async fn example(locks: lock_core::Locks) {
    /// let mut states = locks.connections();
    /// while let Some(state) = states.next().await {
    ///     println!("the store of locks: {state}");
    /// }
    /// # }
    /// ```
    pub fn connections(&self) -> impl Stream<Item = ConnectionState> + Send + Unpin + use<> {
        let Client { home, closed, reach, .. } = &*self.client;
        reach.states([closed.clone(), home.ended()])
    }
}
