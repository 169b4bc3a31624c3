//! What a server says about itself, by field (`INFO`).

use redis::{Cmd, Value, cmd};

use super::answer::text;

/// The server's answer; empty if it may not be asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Info(String);

impl Info {
    /// Returns the question. It may be forbidden.
    pub(super) fn question() -> Cmd {
        cmd("INFO")
    }

    pub(super) fn read(answer: &Value) -> Self {
        Self(text(answer))
    }

    /// Returns the value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    }

    /// Whether the server has told nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn is_replica(&self) -> bool {
        self.field("role") == Some("slave")
    }

    /// Returns the policy by which the server deletes keys when its memory is full, if it does so.
    pub(crate) fn evicts(&self) -> Option<&str> {
        self.field("maxmemory_policy").filter(|policy| *policy != "noeviction")
    }

    /// Whether the server writes its data to a file at each change; `None` if it does not tell.
    pub(crate) fn keeps_data(&self) -> Option<bool> {
        self.field("aof_enabled").map(|enabled| enabled != "0")
    }
}

impl From<&str> for Info {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}
