//! What a server says about itself, by field (`INFO`).

use redis::Value;

use super::answer::text;

/// The server's answer; empty if it may not be asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Info(String);

impl Info {
    pub(super) fn read(answer: &Value) -> Self {
        Self(text(answer))
    }

    /// Returns the value of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    }

    /// Returns the version of a Redis that is too old. Servers that are like Redis name a version of
    /// Redis, too.
    pub(super) fn too_old(&self) -> Option<&str> {
        self.field("redis_version").filter(|version| is_too_old(version))
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

/// Whether this is a Redis before 6.2, which lacks `SET .. GET`.
pub(super) fn is_too_old(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().ok());
    let (Some(Some(major)), Some(Some(minor))) = (numbers.next(), numbers.next()) else {
        return false;
    };
    (major, minor) < (6, 2)
}

#[cfg(test)]
impl From<&str> for Info {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}
