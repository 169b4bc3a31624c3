//! Removes nodes that could not be removed at once: the server refused it, or their grants were
//! lost in an outage. One task per session, several nodes per request.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use lock_core::{
    Clock, Error,
    keep::{leftovers::Leftovers, pool::WeakPool},
};

use crate::session::{Session, attempt::Leftover};

/// How many nodes one request removes.
const AT_ONCE: usize = 64;
/// The pause before a try, so that one request removes all losses of the same moment.
const PAUSE: Duration = Duration::from_millis(100);

/// Removes what attempts have left until the session is dropped. Dropping the future ends the work:
/// the end of a session removes all of its nodes.
pub(crate) async fn work(
    session: Weak<Session>,
    pool: WeakPool<Session, Arc<Error>>,
    left: Arc<Leftovers<Leftover>>,
) {
    loop {
        left.wait().await;
        Clock::Boot.sleep(PAUSE).await;
        let due = left.take(Clock::Boot.now());
        let refused = remove(&session, [due.again, due.new].concat()).await;
        if !refused.is_empty() {
            // Other locks of this session live on, and new ones get another session. So this
            // session can end when its last lock is released, and its end removes the node.
            let Some(alive) = session.upgrade() else { return };
            pool.retire(&alive);
        }
        left.refused(refused, Clock::Boot.now());
    }
}

/// Tries to remove each leftover once. Returns the refused ones.
async fn remove(session: &Weak<Session>, leftovers: Vec<Leftover>) -> Vec<Leftover> {
    let mut refused = Vec::new();
    for some in leftovers.chunks(AT_ONCE) {
        let Some(alive) = session.upgrade() else { break };
        let paths = some.iter().map(|leftover| match leftover {
            Leftover::Node(path) => Some(path.as_str()),
            Leftover::Attempt(..) => None,
        });
        let nodes: Option<Vec<_>> = paths.collect();
        if let Some(nodes) = nodes.filter(|nodes| nodes.len() > 1)
            && alive.remove_all(&nodes).await
        {
            continue;
        }
        for leftover in some {
            let cleared = alive.clear(leftover).await;
            refused.extend(cleared.is_err().then(|| leftover.clone()));
        }
    }
    refused
}
