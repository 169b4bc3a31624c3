//! The way to one server: the present connection, or why there is none.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use lock_core::{Attempt, keep::cancel::unless_cancelled};
use redis::{PushInfo, RedisError};
use tokio::{sync::watch, time::timeout};

use super::{
    client_id::ClientId,
    connection::{Connection, Connector},
    failure::Failure,
};
use crate::error;

/// One server, or the primary of a service, and the present connection to it.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) connector: Connector,
    link: watch::Sender<Link>,
    /// Counts the connections that were tried: of all nodes that share it.
    numbers: Arc<AtomicU64>,
}

/// The present connection, or why there is none.
#[derive(Clone, Debug)]
pub(crate) enum Link {
    Up(Arc<Connection>),
    /// Why, and the server's names for the previous connection.
    Down(RedisError, Vec<ClientId>),
    Closed,
}

impl Line {
    /// A line without a connection.
    pub(crate) fn new(connector: Connector, numbers: Arc<AtomicU64>) -> Self {
        let unused = Link::Down(error::closed_link(), Vec::new());
        Self { connector, link: watch::Sender::new(unused), numbers }
    }

    /// Makes a connection, which counts only after [`up`](Self::up). `on_push` gets the number of
    /// the connection with each push.
    pub(crate) async fn connect(
        &self,
        on_push: impl Fn(u64, PushInfo) + Send + Sync + 'static,
    ) -> Result<Connection, RedisError> {
        let number = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let on_push = Arc::new(move |info| on_push(number, info));
        let previous = match self.state() {
            Link::Down(_, previous) => previous,
            Link::Up(_) | Link::Closed => Vec::new(),
        };
        self.connector.connect(number, &previous, on_push).await
    }

    /// The number of the connection that was tried last.
    pub(crate) fn tried(&self) -> u64 {
        self.numbers.load(Ordering::Relaxed)
    }

    /// Uses a connection from now on, unless the line is closed: then the connection is closed, too.
    pub(crate) fn up(&self, connection: Connection) {
        self.link.send_if_modified(|link| {
            let open = !matches!(link, Link::Closed);
            if open {
                *link = Link::Up(Arc::new(connection));
            }
            open
        });
    }

    /// Notes why no connection can be made.
    pub(crate) fn stays_down(&self, error: RedisError) {
        self.link.send_modify(|link| {
            if let Link::Down(why, _) = link {
                *why = error;
            }
        });
    }

    /// Gives up the connection with this number, unless it was given up before. First `tell`
    /// gets the error.
    pub(crate) fn lose(&self, number: u64, error: RedisError, tell: impl FnOnce(&RedisError)) {
        self.link.send_if_modified(|link| match link {
            Link::Up(connection) if connection.number == number => {
                tell(&error);
                *link = Link::Down(error, connection.peers.clone());
                true
            }
            _ => false,
        });
    }

    /// Ends the line.
    pub(crate) fn close(&self) {
        self.link.send_replace(Link::Closed);
    }

    /// Returns the present state.
    pub(crate) fn state(&self) -> Link {
        self.link.borrow().clone()
    }

    /// Returns a receiver of the connection's changes.
    pub(crate) fn link(&self) -> watch::Receiver<Link> {
        self.link.subscribe()
    }

    /// Returns the present connection.
    pub(crate) fn connection(&self) -> Result<Arc<Connection>, Failure> {
        match &*self.link.borrow() {
            Link::Up(connection) => Ok(connection.clone()),
            Link::Down(error, _) => Err(Failure::Down(error.clone())),
            Link::Closed => Err(Failure::Closed),
        }
    }

    /// Waits for a connection; false if there is none in time, or the caller is cancelled.
    pub(crate) async fn until_up(&self, limit: Duration, caller: Option<&Attempt>) -> bool {
        let mut link = self.link.subscribe();
        let there = |link: &Link| !matches!(link, Link::Down(..));
        let up = async { timeout(limit, link.wait_for(there)).await.is_ok() };
        unless_cancelled(caller, up).await.unwrap_or_default()
    }
}
