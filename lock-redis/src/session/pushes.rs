//! Pushes of the server: grants, revokes, and changes of leaders.

use std::{sync::Arc, time::Duration};

use lock_core::{Clock, keep::limits::DEFAULT_TTL};
use redis::{PushInfo, PushKind, Value};
use uuid::Uuid;

use super::{Session, node::Node, retry::Effort};
use crate::{
    layout::key::Key,
    wire::{
        answer::{self, Push},
        script,
    },
};

/// Time limit of one request that gives a lock back.
const LIMIT: Duration = Duration::from_secs(2);

impl Session {
    /// Takes in a push of a node's connection with this number. Runs on the connection's own task,
    /// in order with the answers.
    pub(super) fn pushed(self: &Arc<Self>, node: &Node, number: u64, info: PushInfo) {
        if node.is_left(number) {
            return;
        }
        match (info.kind, &info.data[..]) {
            (PushKind::Disconnection, _) => {
                let error = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                node.lose(number, error.into());
            }
            (PushKind::Message, [Value::BulkString(channel), Value::BulkString(payload)]) => {
                self.deliver(node, channel, payload);
            }
            _ => {}
        }
    }

    fn deliver(self: &Arc<Self>, node: &Node, channel: &[u8], payload: &[u8]) {
        if self.observers.hint(channel) {
            return;
        }
        let Some((push, id, lock)) = answer::push(payload) else { return };
        let attempt = self.book().attempts.find(id).cloned();
        match (push, attempt) {
            (Push::Granted(token), Some(attempt)) => attempt.pushed(token),
            (Push::Gone, Some(attempt)) => attempt.revoked(),
            (Push::First, Some(attempt)) => self.ask(&attempt, attempt.asks_now()),
            (Push::Granted(_), None) => self.give_back(node, id, lock),
            (Push::Gone | Push::First, None) => {}
        }
    }

    /// Gives back a lock that was granted to an attempt of this client that has left: its server
    /// has lost the withdrawal, by a failover or a restart. Without this, nobody holds the lock for
    /// a TTL, and nobody gets it.
    fn give_back(self: &Arc<Self>, node: &Node, attempt: Uuid, lock: &[u8]) {
        let Some(key) = Key::of_lock(&self.config, lock) else { return };
        // Each node of a cluster sends the push. The one of the lock's node is in order with its
        // answers; another one may be late, when the attempt has held the lock and released it.
        if !std::ptr::eq(&*self.routes.of(key.lock()), node) {
            return;
        }
        let (session, ticket) = (self.clone(), self.ticket(attempt));
        tokio::spawn(async move {
            // As a leader's, which also removes a value and a description.
            let request = script::release(&key, &ticket, false, true);
            let effort = Effort::urgent("release", LIMIT, Clock::Boot.now() + DEFAULT_TTL);
            drop(session.insist(&request, effort, |_| Some(())).await);
        });
    }
}
