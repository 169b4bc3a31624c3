//! Removes what could not be removed at once: nodes whose removal the server refused, and those of
//! grants that were lost in an outage. One task per session, several nodes per request.

use std::{
    sync::{Arc, Mutex, Weak},
    time::Duration,
};

use lock_core::deadline::jitter;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::{End, Session, departures::Departure, poison::lock, slots::Slots};

/// How many nodes one request removes.
const AT_ONCE: usize = 64;
/// Before the first try, so that losses of the same moment go together.
const PAUSE: Duration = Duration::from_millis(100);

/// Removes what attempts have left until the session is over or dropped, which removes all nodes.
pub(crate) async fn work(
    session: Weak<Session>,
    slots: Weak<Mutex<Slots>>,
    over: CancellationToken,
    more: Arc<Notify>,
) {
    let work = async {
        loop {
            more.notified().await;
            let mut pause = PAUSE;
            while {
                tokio::time::sleep(pause).await;
                !end_if_lost(&session, &slots) && round(&session).await
            } {
                // Refused. Other locks of this session live on; new ones get another session, so
                // that this one can end, and with it the node, when its last lock is released.
                let Some(alive) = session.upgrade() else { return };
                let _ = slots.upgrade().inspect(|slots| lock(slots).retire(&alive));
                pause = jitter(alive.ttl().clamp(Duration::from_secs(1), Duration::from_secs(10)));
            }
        }
    };
    tokio::select! {
        () = over.cancelled() => {}
        () = work => {}
    }
}

/// Ends a session all of whose many locks were lost: one request removes what is left of it.
/// Returns whether it did.
fn end_if_lost(session: &Weak<Session>, slots: &Weak<Mutex<Slots>>) -> bool {
    let Some(alive) = session.upgrade() else { return true };
    if alive.departures.len() <= AT_ONCE || alive.is_used() {
        return false;
    }
    // An acquire that is about to begin in it begins again in another one.
    let _ = slots.upgrade().inspect(|slots| lock(slots).retire(&alive));
    alive.finish(End::Ended);
    true
}

/// Tries to remove each once. Returns whether any is left.
async fn round(session: &Weak<Session>) -> bool {
    let Some(departures) = session.upgrade().map(|alive| alive.departures.take()) else {
        return false;
    };
    let mut refused = Vec::new();
    for some in departures.chunks(AT_ONCE) {
        let Some(alive) = session.upgrade() else { return false };
        let nodes: Vec<_> = some.iter().filter_map(Departure::path).collect();
        let all_are_nodes = nodes.len() == some.len();
        if all_are_nodes && nodes.len() > 1 && alive.remove_all(&nodes).await {
            continue;
        }
        for departure in some {
            if departure.is_refused(&alive).await {
                refused.push(departure.clone());
            }
        }
    }
    session.upgrade().is_some_and(|alive| alive.departures.put_back(refused))
}

impl Departure {
    async fn is_refused(&self, session: &Session) -> bool {
        let done = match self {
            Self::Node(path) => session.remove(path).await.map(drop),
            Self::Attempt(directory, attempt) => session.sweep(directory, *attempt).await,
        };
        done.is_err()
    }
}
