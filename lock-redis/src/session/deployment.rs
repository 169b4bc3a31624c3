//! The server's configuration: whether a restart or a failover may lose locks.

use std::{collections::HashMap, time::Duration};

use redis::{Value, cmd};

use super::node::Node;

/// Time limit of one question.
const LIMIT: Duration = Duration::from_secs(2);

impl Node {
    /// Returns whether a restart of the server keeps every confirmed write. Only
    /// `appendfsync always` does: with `appendfsync everysec` and a slow disk, the server confirms
    /// writes before it hands them to the system. A server that hides its settings counts as not
    /// durable.
    pub(crate) async fn is_durable(&self) -> bool {
        let mut get = cmd("CONFIG");
        get.arg("GET").arg("append*");
        // A map, or a flat list in the older protocol.
        let read = |value| redis::from_redis_value::<HashMap<String, String>>(value).ok();
        let settings = self.call(&get, LIMIT).await.ok().and_then(read).unwrap_or_default();
        let is = |name, value| settings.get(name).is_some_and(|found| found == value);
        is("appendonly", "yes") && is("appendfsync", "always")
    }

    /// Returns whether a replica may take over: there is one, or the server does not say.
    pub(crate) async fn has_replicas(&self) -> bool {
        match self.call(&cmd("ROLE"), LIMIT).await {
            Ok(Value::Array(role)) => !matches!(role.get(2), Some(Value::Array(r)) if r.is_empty()),
            _ => true,
        }
    }
}
