//! Removes nodes that could not be removed at once: the server refused it, or their grants were
//! lost in an outage. And nodes that come late. One task per session, several nodes per request.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::join_all;
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
        let (refused, awaited) = remove(&session, [due.again, due.new].concat()).await;
        if !refused.is_empty() {
            // Other locks of this session live on, and new ones get another session. So this
            // session can end when its last lock is released, and its end removes the node.
            let Some(alive) = session.upgrade() else { return };
            pool.retire(&alive);
        }
        left.refused([refused, awaited].concat(), Clock::Boot.now());
    }
}

/// Tries to remove each leftover once. Returns the refused ones, and those of which more may come.
async fn remove(
    session: &Weak<Session>,
    leftovers: Vec<Leftover>,
) -> (Vec<Leftover>, Vec<Leftover>) {
    let (mut refused, mut awaited) = (Vec::new(), Vec::new());
    // Nodes that stand alone go with one request.
    let is_node = |leftover: &Leftover| matches!(leftover, Leftover::Node(_));
    let (nodes, others): (Vec<_>, Vec<_>) = leftovers.into_iter().partition(is_node);
    for some in nodes.chunks(AT_ONCE).chain(others.chunks(AT_ONCE)) {
        let Some(alive) = session.upgrade() else { break };
        let paths = some.iter().map(|leftover| match leftover {
            Leftover::Node(path) => Some(path.as_str()),
            Leftover::Attempt(..) | Leftover::Late(..) => None,
        });
        let nodes: Option<Vec<_>> = paths.collect();
        if let Some(nodes) = nodes.filter(|nodes| nodes.len() > 1)
            && alive.remove_all(&nodes).await
        {
            continue;
        }
        // Together: the nodes of lost locks, which come next, must not wait for each single look.
        let look = Clock::Boot.now();
        let cleared = join_all(some.iter().map(|leftover| alive.clear(leftover))).await;
        for (leftover, cleared) in some.iter().zip(cleared) {
            match cleared {
                Err(_) => refused.push(leftover.clone()),
                Ok(()) if leftover.may_come_after(look) => awaited.push(leftover.clone()),
                Ok(()) => {}
            }
        }
    }
    (refused, awaited)
}
