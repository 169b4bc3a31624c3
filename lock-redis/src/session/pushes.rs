//! Pushes of the server: grants, revokes, and changes of leaders.

use redis::{PushInfo, PushKind, Value};

use super::{Session, node::Node};
use crate::wire::answer::{self, Push};

impl Session {
    /// Takes in a push of a node's connection with this number. Runs on the connection's own task,
    /// in order with the answers.
    pub(super) fn pushed(&self, node: &Node, number: u64, info: PushInfo) {
        if node.is_left(number) {
            return;
        }
        match (info.kind, &info.data[..]) {
            (PushKind::Disconnection, _) => {
                let error = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                node.lose(number, error.into());
            }
            (PushKind::Message, [Value::BulkString(channel), Value::BulkString(payload)]) => {
                self.told(channel, payload);
            }
            _ => {}
        }
    }

    fn told(&self, channel: &[u8], payload: &[u8]) {
        if self.observers.tell(channel, payload) {
            return;
        }
        let Some((push, id)) = answer::push(payload) else { return };
        let Some(attempt) = self.book().attempts.find(id).cloned() else { return };
        match push {
            Push::Granted(token) => attempt.pushed(token),
            Push::Gone => attempt.gone(),
        }
    }
}
