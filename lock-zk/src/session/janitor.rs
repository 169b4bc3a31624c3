//! Removes nodes that could not be removed at once: the server refused it, or their grants were
//! lost in an outage. And nodes that come late. One task per session, several nodes per request.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::join_all;
use lock_core::{Clock, keep::leftovers::Leftovers};

use crate::session::{
    Session,
    attempt::{Late, Leftover},
};

/// How many nodes are removed at a time, with one request if they stand alone.
pub(super) const AT_ONCE: usize = 64;
/// The pause before a try, so that one request removes all losses of the same moment.
const PAUSE: Duration = Duration::from_millis(100);

/// Removes what attempts have left until the session is dropped. `retire` lets the session take no
/// new locks. Dropping the future ends the work: the end of a session removes all of its nodes.
pub(crate) async fn work(
    session: Weak<Session>,
    retire: impl Fn(&Arc<Session>),
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
            retire(&alive);
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
    let (mut nodes, mut late) = (Vec::new(), HashMap::<_, Late>::new());
    for leftover in leftovers {
        match leftover {
            Leftover::Node(path) => nodes.push(path),
            // One list of a directory shows the nodes of all attempts. Of each the newest time
            // counts, which comes last.
            Leftover::Late(directory, attempts) => {
                late.entry(directory).or_default().extend(attempts)
            }
        }
    }
    for some in nodes.chunks(AT_ONCE) {
        let Some(alive) = session.upgrade() else { break };
        let paths: Vec<_> = some.iter().map(String::as_str).collect();
        if paths.len() > 1 && alive.remove_all(&paths).await {
            continue;
        }
        let removed = join_all(paths.iter().map(|path| alive.remove(path))).await;
        let failed = some.iter().zip(removed).filter(|(_, removed)| removed.is_err());
        refused.extend(failed.map(|(path, _)| Leftover::Node(path.clone())));
    }
    let late: Vec<_> = late.into_iter().collect();
    for some in late.chunks(AT_ONCE) {
        let Some(alive) = session.upgrade() else { break };
        // Together: the nodes of lost locks, which come next, must not wait for each single look.
        let looks = some.iter().map(|(directory, late)| alive.clear(directory, late));
        for ((directory, late), more) in some.iter().zip(join_all(looks).await) {
            match more {
                Err(_) => refused.push(Leftover::Late(directory.clone(), late.clone())),
                Ok(more) if more.is_empty() => {}
                Ok(more) => awaited.push(Leftover::Late(directory.clone(), more)),
            }
        }
    }
    (refused, awaited)
}
