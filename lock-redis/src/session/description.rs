//! The description of a client, for operators that look at a queue.

use std::{collections::HashMap, time::Duration};

use lock_core::{Clock, Error, Result, this_process};
use redis::{Cmd, RedisError, cmd};

use super::Session;
use crate::{
    error,
    layout::key::client_key,
    wire::{answer::bytes, connection::Connection, turns::Lane},
};

/// Time until a client's description expires, and the period at which it is written again.
const TTL: Duration = Duration::from_secs(3600);
pub(super) const PERIOD: Duration = Duration::from_secs(1200);
/// Time limit of a request that writes a description, or removes one.
pub(super) const WRITE_LIMIT: Duration = Duration::from_secs(1);
const READ_LIMIT: Duration = Duration::from_secs(2);

impl Session {
    /// Writes this client's description. A server that is full, or refuses this write, is still
    /// good enough for locks.
    pub(super) async fn describe(&self, connection: &Connection) -> Result<(), RedisError> {
        let mut set = cmd("SET");
        set.arg(client_key(&self.id)).arg(&*this_process());
        set.arg("PX").arg(TTL.as_secs() * 1000);
        match connection.call(&set, WRITE_LIMIT).await {
            Err(error) if error::is_broken(&error) || error::is_elsewhere(&error) => Err(error),
            _ => Ok(()),
        }
    }

    /// Returns the descriptions of clients, by client.
    ///
    /// # Errors
    ///
    /// Same as [`insist`](Self::insist).
    pub(crate) async fn descriptions(
        &self,
        clients: impl Iterator<Item = &str>,
    ) -> Result<HashMap<String, String>> {
        let mut clients: Vec<_> = clients.collect();
        clients.sort_unstable();
        clients.dedup();
        let mut known = HashMap::new();
        let deadline = Clock::Boot.now() + READ_LIMIT;
        for client in clients {
            // One by one: in a cluster these keys are elsewhere, and there are seldom many.
            let get = Cmd::get(client_key(client));
            let op = ("inspect", Lane::Turn);
            match self.insist(op, &get, READ_LIMIT, deadline, |value| Some(bytes(value))).await {
                Ok((_, text)) => {
                    let text = text.map(|text| String::from_utf8_lossy(&text).into_owned());
                    known.extend(text.map(|text| (client.to_owned(), text)));
                }
                // These keys do not start with the prefix. A user without the right to read them
                // sees no descriptions.
                Err(Error::Denied { .. }) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(known)
    }
}
