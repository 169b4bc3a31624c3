//! How a session's connection is made.

use std::{sync::Arc, time::Duration};

use zookeeper_client::{Client, Error as ZkError};

use crate::wire::{questions, route::Route};

/// Opens a session at any of the hosts.
///
/// The client crate tries them one after the other in random order, and a silent one holds it up.
/// So if there are several, they are asked first for a sign of life, and the silent ones are given
/// to the crate once only. One session is opened: a server that is slow, such as after an outage,
/// must not get more of them. So if none gives a sign of life at once, the crate's own, longer limit
/// counts: each handshake that it gives up leaves a session at the server.
///
/// Returns also the newest login that the session has.
pub(crate) async fn connect(
    route: Arc<Route>,
    ttl: Duration,
) -> Result<(Client, Option<String>), ZkError> {
    let silent = questions::silent(&route).await;
    let (connector, login) = route.connector(ttl, silent.is_none());
    let client = connector.connect(&route.ensemble(ttl, &silent.unwrap_or_default())).await?;
    Ok((client, login))
}
