//! How a session's connection is made.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use zookeeper_client::{Client, Error as ZkError};

use crate::wire::route::Route;

/// How long a try to connect may take before another one starts beside it, if there are several
/// hosts; and the most tries at the same time.
const HEDGE: Duration = Duration::from_millis(200);
const MOST_TRIES: usize = 16;

/// Opens a session at any of the hosts.
///
/// The client crate tries them one after the other in random order, and waits for one that swallows
/// packets. So if there are several, more tries start beside a slow
/// one. The first to succeed wins, and the sessions of the others are closed.
///
/// Returns also the newest login that the session has.
pub(crate) async fn connect(
    route: Arc<Route>,
    ttl: Duration,
) -> Result<(Client, Option<String>), ZkError> {
    let ensemble = route.ensemble(ttl);
    let (connector, login) = route.connector(ttl);
    let mut tries = FuturesUnordered::new();
    loop {
        if tries.is_empty() || route.hosts.len() > 1 && tries.len() < MOST_TRIES {
            tries.push(connector.clone().connect(&ensemble));
        }
        tokio::select! {
            Some(connected) = tries.next() => return connected.map(|client| (client, login)),
            () = tokio::time::sleep(HEDGE) => {}
        }
    }
}
