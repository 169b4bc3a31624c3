//! Requests that count only when replicas have them, too.
//!
//! `WAIT` counts the writes of its own connection, and blocks it. So such a request and its `WAIT`
//! have a connection for themselves, which serves the next one afterwards. Some are sent at a time,
//! the others wait in this process.

use std::{io::ErrorKind, sync::Arc, time::Duration};

use lock_core::{deadline::jitter, keep::poison::lock};
use redis::{Cmd, RedisError, Value};
use tokio::time::{sleep, timeout};

use super::{
    node::Node,
    spare::{Share, Spare},
};
use crate::{
    error,
    wire::{connection::Connection, failure::Failure, peer::Peer},
};

/// Pause after a connection could not be made though the node's own one lives: the login is refused,
/// or there are too many.
const PAUSE: Duration = Duration::from_millis(250);
/// Time limit of ending one connection. A host that vanished answers nothing at all.
const KILL_LIMIT: Duration = Duration::from_secs(1);

/// A spare connection in use. If its request is given up, the server must end it: the request may
/// be on its way.
struct InUse<'a> {
    node: &'a Node,
    spare: Option<Spare>,
}

impl Node {
    /// Sends a command that changes a lock, and waits until this many replicas have the change.
    /// Returns the answer, and how many replicas have it. `asking`: a slot of a cluster is being
    /// moved to this node.
    ///
    /// # Errors
    ///
    /// Same as [`call`](Self::call).
    pub(super) async fn call_and_wait(
        self: &Arc<Self>,
        command: &Cmd,
        replicas: u32,
        asking: bool,
        (share, limit): (Share, Duration),
    ) -> Result<(Value, u32), Failure> {
        let _permit = self.waited.of(share).await;
        let node = self.connection()?;
        let spare = match self.spare(node.number) {
            Some(spare) => spare,
            None => Spare { connection: self.new_spare(&node).await?, of: node.number },
        };
        let mut in_use = InUse { node: self, spare: Some(spare) };
        let Some(spare) = &in_use.spare else { return Err(Failure::Closed) };
        let answer = spare.connection.call_and_wait(command, replicas, asking, limit).await;
        let is_broken = answer.as_ref().is_err_and(error::is_broken);
        if is_broken {
            drop(in_use);
            // They have been idle for longer: what has ended this one has ended them, too.
            lock(&self.spares).clear();
            if let Err(error) = self.end_stale(&node).await {
                // The host may be gone without a word. The next connection ends them.
                self.lose(node.number, error);
            }
        } else if let Some(spare) = in_use.spare.take() {
            lock(&self.spares).push(spare);
        }
        match answer {
            Err(error) if is_broken => Err(Failure::Lost(error)),
            answer => self.judge(&node, answer),
        }
    }

    async fn new_spare(&self, node: &Connection) -> Result<Connection, Failure> {
        let error = match self.connector.spare(node).await {
            Ok(connection) => return Ok(connection),
            Err(error) => error,
        };
        // A server that cannot be reached has not kept the node's connection either.
        match error::is_broken(&error) {
            true => drop(self.lose(node.number, error.clone())),
            false => sleep(jitter(PAUSE)).await,
        }
        Err(Failure::Down(Arc::new(error)))
    }

    fn spare(&self, of: u64) -> Option<Spare> {
        let mut spares = lock(&self.spares);
        spares.retain(|spare| spare.of == of);
        spares.pop()
    }

    /// Lets the server end connections that were given up, so that no request on them takes effect
    /// later. Those that are left when the server does not answer stay listed.
    ///
    /// # Errors
    ///
    /// The client library's error if this connection is broken, or silent for [`KILL_LIMIT`].
    pub(super) async fn end_stale(&self, on: &Connection) -> Result<(), RedisError> {
        loop {
            // Listed until it is answered, so that no peer is forgotten if this future is dropped.
            let Some(peer) = lock(&self.stale).first().cloned() else { return Ok(()) };
            // It may be forbidden, and then a late request ends with its TTL.
            let killed = timeout(KILL_LIMIT, on.kill(&peer)).await;
            killed.unwrap_or_else(|_| Err(std::io::Error::from(ErrorKind::TimedOut).into()))?;
            lock(&self.stale).retain(|other| *other != peer);
        }
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        let peer: Option<Peer> = self.spare.take().and_then(|spare| spare.connection.peer);
        lock(&self.node.stale).extend(peer);
    }
}
