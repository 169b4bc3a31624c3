//! Requests that count only when replicas have them, too.
//!
//! `WAIT` counts the writes of its own connection, and blocks it. So such a request and its `WAIT`
//! have a connection for themselves, which serves the next one afterwards.

use std::{sync::Arc, time::Duration};

use lock_core::keep::poison::lock;
use redis::{Cmd, Value};

use super::{node::Node, spare::Spare};
use crate::{
    error,
    wire::{
        connection::{Connection, Peer},
        failure::Failure,
    },
};

/// A spare connection in use. If its request is given up, the server must end it: the request may
/// be on its way.
struct InUse<'a> {
    node: &'a Node,
    spare: Option<Spare>,
}

impl Node {
    /// Sends a command that changes a lock, and waits until this many replicas have the change.
    /// Returns the answer, and how many replicas have it.
    ///
    /// # Errors
    ///
    /// Same as [`call`](Self::call).
    pub(super) async fn call_and_wait(
        self: &Arc<Self>,
        command: &Cmd,
        replicas: u32,
        limit: Duration,
    ) -> Result<(Value, u32), Failure> {
        let node = self.connection()?;
        let spare = match self.spare(node.number) {
            Some(spare) => spare,
            None => Spare {
                connection: self.connector.spare(&node).await.map_err(Failure::Lost)?,
                of: node.number,
            },
        };
        let mut in_use = InUse { node: self, spare: Some(spare) };
        let Some(spare) = &in_use.spare else { return Err(Failure::Closed) };
        let answer = spare.connection.call_and_wait(command, replicas, limit).await;
        let is_broken = answer.as_ref().is_err_and(error::is_broken);
        if is_broken {
            drop(in_use);
            self.end_stale(&node).await;
        } else if let Some(spare) = in_use.spare.take() {
            lock(&self.spares).push(spare);
        }
        match answer {
            Err(error) if is_broken => Err(Failure::Lost(error)),
            answer => self.judge(&node, answer),
        }
    }

    fn spare(&self, of: u64) -> Option<Spare> {
        let mut spares = lock(&self.spares);
        spares.retain(|spare| spare.of == of);
        spares.pop()
    }

    /// Lets the server end connections that were given up, so that no request on them takes effect
    /// later.
    pub(super) async fn end_stale(&self, on: &Connection) {
        let stale = std::mem::take(&mut *lock(&self.stale));
        for peer in stale {
            // It may be forbidden, and then a late request ends with its TTL.
            let _ = on.kill(&peer).await;
        }
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        let peer: Option<Peer> = self.spare.take().and_then(|spare| spare.connection.peer);
        lock(&self.node.stale).extend(peer);
    }
}
