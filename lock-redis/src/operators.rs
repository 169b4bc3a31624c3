//! What operators ask for: the names in use, and to take a lock away.

use std::collections::BTreeSet;

use lock_core::{Effect, LockName, Result};
use redis::Value;
use uuid::Uuid;

use crate::{
    config::RedisConfig,
    error,
    layout::key::{Key, QUEUE, lock_of},
    server::LIMIT,
    session::{CLOCK, Lane, Session},
    wire::script,
};

impl Session {
    /// The names that start with `prefix` and that somebody holds or waits for.
    ///
    /// # Errors
    ///
    /// As [`insist`](Self::insist).
    pub(crate) async fn names(&self, config: &RedisConfig, prefix: &str) -> Result<Vec<LockName>> {
        let wanted = |lock: &[u8]| {
            Key::name_of(config, lock).filter(|name| name.as_str().starts_with(prefix))
        };
        let held = [&literally(&Key::start_of(config, prefix))[..], b"*"].concat();
        let held = self.keys(&held).await?;
        let mut names: BTreeSet<_> = held.iter().filter_map(|key| wanted(key)).collect();
        // Between a holder and the next one there may be a moment, and who waits may be dead.
        let queues = self.keys(&[b"*", QUEUE].concat()).await?;
        for name in queues.iter().filter_map(|queue| wanted(lock_of(queue)?)) {
            if !names.contains(&name) && !self.inspect(&Key::new(config, &name)).await?.is_empty() {
                names.insert(name);
            }
        }
        Ok(names.into_iter().collect())
    }

    async fn keys(&self, pattern: &[u8]) -> Result<Vec<Vec<u8>>> {
        let (mut cursor, mut keys) = (b"0".to_vec(), Vec::new());
        loop {
            let (next, page) = self.page("names", pattern, &cursor).await?;
            keys.extend(page);
            if next == b"0" {
                return Ok(keys);
            }
            cursor = next;
        }
    }

    /// Removes an attempt of whatever client. Answers whether there was one.
    ///
    /// # Errors
    ///
    /// As [`insist`](Self::insist). [`Error::Unavailable`](lock_core::Error::Unavailable) also if
    /// there is none any more, and a request without an answer may have removed it.
    pub(crate) async fn revoke(&self, key: &Key, attempt: Uuid) -> Result<bool> {
        let (deadline, command) = (CLOCK.now() + LIMIT * 2, script::revoke(key, attempt));
        match self.insist_and_tell(Lane::First, "revoke", &command, LIMIT, deadline, None).await {
            (_, Ok((_, Value::Int(1)))) => Ok(true),
            (Effect::None, Ok((_, Value::Int(0)))) => Ok(false),
            (effect, Ok((_, Value::Int(0)))) => {
                let why =
                    "the attempt is gone; whether by this call is not known, as an answer was lost";
                Err(error::unavailable("revoke", effect, why))
            }
            (_, Ok((_, value))) => Err(error::unexpected("revoke", &value)),
            (_, Err(error)) => Err(error),
        }
    }
}

/// A pattern that matches this text only.
fn literally(text: &[u8]) -> Vec<u8> {
    let escaped = |byte: &u8| match byte {
        b'*' | b'?' | b'[' | b']' | b'\\' => vec![b'\\', *byte],
        _ => vec![*byte],
    };
    text.iter().flat_map(escaped).collect()
}
