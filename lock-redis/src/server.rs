//! What is asked of the server besides locks.

use std::time::Duration;

use lock_core::{FencingToken, Result, TokenFloor};
use redis::{Value, cmd};

use crate::{
    error,
    session::{CLOCK, Lane, Session},
    wire::script,
};

/// How long one question waits for its answer.
pub(crate) const LIMIT: Duration = Duration::from_secs(2);

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

    /// One step of a SCAN: the next cursor, which is `0` after the last step, and keys.
    ///
    /// # Errors
    ///
    /// As [`insist`](Self::insist).
    pub(crate) async fn page(
        &self,
        op: &'static str,
        pattern: &[u8],
        cursor: &[u8],
    ) -> Result<(Vec<u8>, Vec<Vec<u8>>)> {
        let mut scan = cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(pattern).arg("COUNT").arg(1000);
        let value = self.question(op, &scan).await?;
        redis::from_redis_value(value.clone()).map_err(|_| error::unexpected(op, &value))
    }

    /// How far tokens have come, after the floor with this key was raised, if it is to be.
    ///
    /// # Errors
    ///
    /// As [`insist`](Self::insist).
    pub(crate) async fn token_floor(
        &self,
        op: &'static str,
        key: &[u8],
        above: Option<FencingToken>,
    ) -> Result<TokenFloor> {
        let value = self.question(op, &script::floor(key, above)).await?;
        let (above, newest): (u64, u64) =
            redis::from_redis_value(value.clone()).map_err(|_| error::unexpected(op, &value))?;
        Ok(TokenFloor::new(FencingToken::new(above), FencingToken::new(newest)))
    }

    /// Asks something that may be asked twice.
    ///
    /// # Errors
    ///
    /// As [`insist`](Self::insist).
    pub(crate) async fn question(&self, op: &'static str, command: &redis::Cmd) -> Result<Value> {
        let deadline = CLOCK.now() + LIMIT * 2;
        self.insist(Lane::Turn, op, command, LIMIT, deadline, None).await.map(|(_, value)| value)
    }
}

/// The names and values of CONFIG GET: a map, or a flat list in the older protocol.
fn pairs(value: Value) -> Option<Vec<(String, String)>> {
    match value {
        Value::Map(_) | Value::Array(_) => redis::from_redis_value(value).ok(),
        _ => None,
    }
}
