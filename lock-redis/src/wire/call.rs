//! A command as it goes to a server, and what its way there depends on.

use std::time::Duration;

use redis::{Cmd, ErrorKind, RedisResult, ServerErrorKind, ToRedisArgs, Value};

use super::lua::{ACQUIRE, ACQUIRE_ALL, CONVERT, DETACH, Lua, RENEW_KEY, ROUND};
use crate::layout::key::KeyName;

/// A command, and the script that it calls: a server that lacks it gets it first.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) command: Cmd,
    script: Option<&'static Lua>,
    /// Its slot of a cluster is being moved to the server that gets it.
    pub(crate) asking: bool,
}

impl Call {
    /// Begins the call of a script with these keys.
    pub(crate) fn new(script: &'static Lua, keys: &[KeyName<'_>]) -> Self {
        // Room for a ticket and a number with each key. With more it grows.
        let (count, names) = (keys.len(), keys.iter().map(KeyName::len).sum::<usize>());
        let mut command = Cmd::with_capacity(8 + 3 * count, names + 64 * (count + 2));
        command.arg("EVALSHA").arg(script.hash()).arg(count).arg(keys);
        Self { command, script: Some(script), asking: false }
    }

    /// Adds arguments.
    pub(crate) fn arg(mut self, arg: impl ToRedisArgs) -> Self {
        self.command.arg(arg);
        self
    }

    /// Returns the script, if this answer says that the server lacks it.
    pub(super) fn lacked(&self, answer: &RedisResult<Value>) -> Option<&'static Lua> {
        let lacks = ErrorKind::Server(ServerErrorKind::NoScript);
        self.script.filter(|_| answer.as_ref().is_err_and(|error| error.kind() == lacks))
    }

    pub(crate) fn calls(&self, script: &Lua) -> bool {
        self.script.is_some_and(|own| std::ptr::eq(own, script))
    }

    /// Whether it is a renewal.
    pub(super) fn renews(&self) -> bool {
        self.calls(&ROUND) || self.calls(&RENEW_KEY)
    }

    /// Whether it may grant or renew a lock, or give it to another attempt.
    pub(crate) fn may_gain(&self) -> bool {
        let gaining = [&ACQUIRE, &ACQUIRE_ALL, &CONVERT, &DETACH];
        self.renews() || gaining.into_iter().any(|script| self.calls(script))
    }

    /// Whether this answer says that it has gained something: a lock, or more time.
    pub(crate) fn has_gained(&self, answer: &Value) -> bool {
        match answer {
            Value::Int(number) => *number > 0,
            // A place in the queue.
            Value::Array(_) => !self.calls(&ACQUIRE),
            _ => true,
        }
    }
}

impl From<Cmd> for Call {
    fn from(command: Cmd) -> Self {
        Self { command, script: None, asking: false }
    }
}

/// A call, and the keys of it that count outside of the server.
pub(crate) struct Request<'a> {
    pub(crate) call: Call,
    /// In a cluster, the node with its slot gets the call.
    pub(crate) key: &'a [u8],
    /// The token floor's key, if the call has it.
    pub(crate) floor: Option<KeyName<'a>>,
}

impl<'a> Request<'a> {
    /// A command that calls no script.
    pub(crate) fn new(key: &'a [u8], command: Cmd) -> Self {
        Self { call: command.into(), key, floor: None }
    }

    /// Adds arguments.
    pub(super) fn arg(self, arg: impl ToRedisArgs) -> Self {
        Self { call: self.call.arg(arg), ..self }
    }
}

pub(crate) fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}
