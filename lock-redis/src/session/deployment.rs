//! What the server says about itself: what a restart or a failover of it may lose.

use std::time::Duration;

use redis::{Value, cmd};

use super::Session;

/// How long one question waits for its answer.
const LIMIT: Duration = Duration::from_secs(2);

impl Session {
    /// Whether a restart of the server loses nothing that it has confirmed. Only then: with
    /// `appendfsync everysec` the server confirms writes that it has not yet handed to the system
    /// while the disk is slow. A server that does not tell is not believed to be.
    pub(crate) async fn is_durable(&self) -> bool {
        let mut get = cmd("CONFIG");
        get.arg("GET").arg("append*");
        let settings = self.call(&get, LIMIT).await.ok().and_then(pairs).unwrap_or_default();
        let is = |name: &str, value: &str| settings.iter().any(|(n, v)| n == name && v == value);
        is("appendonly", "yes") && is("appendfsync", "always")
    }

    /// Whether a replica may take over: there is one, or the server does not tell.
    pub(crate) async fn has_replicas(&self) -> bool {
        match self.call(&cmd("ROLE"), LIMIT).await {
            Ok(Value::Array(role)) => !matches!(role.get(2), Some(Value::Array(r)) if r.is_empty()),
            _ => true,
        }
    }
}

/// The names and values of CONFIG GET: a map, or a flat list in the older protocol.
fn pairs(value: Value) -> Option<Vec<(String, String)>> {
    match value {
        Value::Map(_) | Value::Array(_) => redis::from_redis_value(value).ok(),
        _ => None,
    }
}
