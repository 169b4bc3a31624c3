//! A connection as its server names it.

use redis::{Cmd, Value, cmd};

use crate::wire::answer::text;

/// A connection as the server names it. The id alone is not enough: a restarted server counts anew.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct ClientId {
    id: String,
    addr: String,
}

impl ClientId {
    /// Reads the answer to `CLIENT INFO`: `id=7 addr=127.0.0.1:50122 ..`.
    pub(crate) fn read(answer: &Value) -> Option<Self> {
        let line = text(answer);
        let field = |name: &str| {
            line.split_ascii_whitespace().find_map(|f| f.strip_prefix(name)).map(str::to_owned)
        };
        let addr = field("addr=")?;
        // All connections through a Unix socket have the same address. A restarted server counts
        // anew, and may have given this id to any connection.
        (!addr.starts_with('/')).then_some(())?;
        Some(Self { id: field("id=")?, addr })
    }

    /// Returns the command by which the server ends the connection. It may be forbidden, too.
    pub(crate) fn kill(&self) -> Cmd {
        cmd("CLIENT").arg("KILL").arg("ID").arg(&self.id).arg("ADDR").arg(&self.addr).take()
    }
}
