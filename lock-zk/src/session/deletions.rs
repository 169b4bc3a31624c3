//! Watches our own nodes, so that their deletion by an operator is noticed.
//!
//! A watch costs a request, and most locks are held for a moment only. So a node is watched once it
//! is [100 ms](super::unwatched) old, whether its attempt waits or holds. An uncontended acquire
//! and release stay at three requests, and a deletion is noticed within about that time. A waiter
//! behind another client's entry is watched at once: the end of that entry would admit it, even if
//! its own node were gone. Where there is no room for a watch, one look per second finds all nodes
//! that are gone.

use std::{
    collections::HashSet,
    sync::{Arc, Weak},
};

use futures_util::{StreamExt, stream::FuturesUnordered};
use lock_core::Clock;
use tokio::sync::Notify;
use zookeeper_client::{Error as ZkError, EventType};

use crate::{
    error,
    session::{Session, attempt::Attempt, retry::pause_after},
    wire::watches::{LOOK, Watch, Watched},
};

/// Looks for the nodes that got no watch, with one request for all of them. A server before 3.6
/// does not know this request: there only a release notices that its node is gone. Returns whether
/// there are nodes without a watch.
async fn look_after(session: &Weak<Session>) -> bool {
    let Some(alive) = session.upgrade() else { return false };
    let unwatched = alive.unwatched.left_out();
    let Ok(exchange) = alive.begin() else { return false };
    drop(alive);
    if unwatched.is_empty() {
        return false;
    }
    let Ok(own) = exchange.own_nodes().await else { return true };
    let own: HashSet<_> = own.iter().map(String::as_str).collect();
    for attempt in unwatched {
        if attempt.node().is_some_and(|node| !own.contains(node.path.as_str())) {
            attempt.gone();
        }
    }
    true
}

/// Looks for the nodes that got no watch. Ends only by being dropped.
pub(crate) async fn look(session: Weak<Session>, crowded: Arc<Notify>) {
    loop {
        crowded.notified().await;
        while look_after(&session).await {
            Clock::Boot.sleep(LOOK).await;
        }
    }
}

/// Watches the own nodes of a session until the session is dropped.
pub(crate) async fn watch(session: Weak<Session>, first: Arc<Notify>) {
    let mut watched = FuturesUnordered::new();
    loop {
        let Some(alive) = session.upgrade() else { return };
        let (grown, pause) = alive.unwatched.grown_up(Clock::Boot.now());
        drop(alive);
        for attempt in grown {
            watched.push(watch_one(session.clone(), attempt));
        }
        let more = Clock::Boot.timeout(pause, first.notified());
        tokio::pin!(more);
        loop {
            tokio::select! {
                _ = &mut more => break,
                Some(()) = watched.next() => {}
            }
        }
    }
}

async fn watch_one(session: Weak<Session>, attempt: Arc<Attempt>) {
    let weak = Arc::downgrade(&attempt);
    let mut attempt = Some(attempt);
    // Held only during a request: a watch must not keep a lock's memory.
    while let Some(alive) = attempt.take().or_else(|| weak.upgrade()) {
        // Boxed, since it is over soon, but this future stays as long as the lock is held.
        match Box::pin(arm(&session, &alive)).await {
            Ok(Some(watch)) if !watch.is_armed() => {
                let Some(session) = session.upgrade() else { return };
                return session.unwatched.leave_out(&alive);
            }
            Ok(Some(watch)) => {
                let event = watch.into_event();
                alive.watch(event.clone());
                drop(alive);
                match event.wait().await {
                    EventType::NodeDeleted => {
                        let _ = weak.upgrade().inspect(|attempt| attempt.gone());
                        return;
                    }
                    EventType::Session => return,
                    _ => {}
                }
            }
            Err(ZkError::NoNode) => return alive.gone(),
            // Same as in `Session::again`: a loop without a pause might hold up a shutdown.
            Err(error) if error::may_succeed_later(&error) => {
                Clock::Boot.sleep(pause_after(&error)).await;
            }
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(target: "distlock", %error, "a revoke of a lock will not be noticed");
                return;
            }
        }
    }
}

/// Sets the watch, unless there is nothing to watch any more.
async fn arm(session: &Weak<Session>, attempt: &Attempt) -> Result<Option<Watch>, ZkError> {
    let Some(session) = session.upgrade() else { return Ok(None) };
    let (Some(node), Ok(exchange)) = (attempt.node(), session.begin()) else { return Ok(None) };
    if attempt.has_ended() {
        return Ok(None);
    }
    Ok(Some(exchange.watch_end(&node.path, Watched::Own).await?))
}
