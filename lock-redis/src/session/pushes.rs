//! Pushes of the server: grants, revokes, and changes of leaders.

use std::sync::Arc;

use redis::{PushInfo, PushKind, Value};

use super::Session;
use crate::wire::answer::{self, Push};

impl Session {
    /// Takes in a push. Runs on the connection's own task, in order with the answers.
    pub(super) fn pushed(self: &Arc<Self>, number: u64, info: PushInfo) {
        match info.kind {
            PushKind::Disconnection => {
                let error = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                self.lose(number, error.into());
            }
            PushKind::Message => {
                let [Value::BulkString(channel), Value::BulkString(payload)] = &info.data[..]
                else {
                    return;
                };
                if self.observers.tell(channel, payload) {
                    return;
                }
                let Some((push, id)) = answer::push(payload) else { return };
                let attempt = self.book().attempts.find(id).cloned();
                match (attempt, push) {
                    (Some(attempt), Push::Granted(token)) => attempt.pushed(token),
                    (Some(attempt), Push::Gone) => attempt.gone(),
                    (None, _) => {}
                }
            }
            _ => {}
        }
    }
}
