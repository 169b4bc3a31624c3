//! The description of a client, for operators that look at a queue. It is for people's eyes: no
//! connect, close or look depends on it.

use std::{collections::BTreeSet, time::Duration};

use lock_core::this_process;
use redis::{Cmd, cmd};
use tokio::time::timeout;

use super::Session;
use crate::{
    error,
    layout::key::client_key,
    wire::{
        answer::bytes, call::Request, connection::Connection, failure::Failure, snapshot::Snapshot,
    },
};

/// Time until a client's description expires, and the period at which it is written again.
const TTL: Duration = Duration::from_secs(3600);
pub(super) const PERIOD: Duration = Duration::from_secs(1200);
/// Time limit of a request that writes a description, or removes one.
pub(super) const WRITE_LIMIT: Duration = Duration::from_secs(1);
const READ_LIMIT: Duration = Duration::from_secs(2);

impl Session {
    /// Writes this client's description, if the server lets it.
    pub(super) async fn describe(&self, connection: &Connection) {
        let mut set = cmd("SET");
        set.arg(client_key(&self.id)).arg(&*this_process());
        set.arg("PX").arg(TTL.as_secs() * 1000);
        // A broken connection shows in the next renewal as well.
        drop(connection.call(&set.into(), WRITE_LIMIT).await);
    }

    /// Removes this client's description, if its server can be reached and lets it. It expires by
    /// itself as well.
    pub(super) async fn end_description(&self) {
        let key = client_key(&self.id);
        drop(self.routes.of(&key).ask(Cmd::del(&key), WRITE_LIMIT).await);
    }

    /// Adds the descriptions of clients to a name's state, as far as they can be read.
    pub(crate) async fn describe_clients(&self, snapshot: &mut Snapshot) {
        let clients: BTreeSet<_> = snapshot.clients().map(str::to_owned).collect();
        // Given up as a whole: a question with the rest of the time would give up a good connection.
        let ask = async {
            for client in clients {
                // One by one: in a cluster these keys are elsewhere, and there are seldom many.
                let key = client_key(&client);
                let get = Request::new(&key, Cmd::get(&key));
                let answer = match self.call(&get, None, READ_LIMIT).await {
                    Err(Failure::Refused(error)) if self.is_redirected(&error) => {
                        self.call(&get, None, READ_LIMIT).await
                    }
                    answer => answer,
                };
                match answer {
                    Ok(answer) => {
                        let text = bytes(&answer.value);
                        let text = text.map(|text| String::from_utf8_lossy(&text).into_owned());
                        snapshot.descriptions.extend(text.map(|text| (client, text)));
                    }
                    // A user may lack the right, since these keys do not start with the prefix.
                    Err(Failure::Refused(error)) if error::is_denied(&error) => break,
                    // Their node may be out of reach.
                    Err(_) => {}
                }
            }
        };
        let _ = timeout(READ_LIMIT, ask).await;
    }
}
