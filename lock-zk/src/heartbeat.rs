//! What keeps a session's deadlines moving, and notices its end.
//!
//! The client crate pings the server by itself, but tells nobody when a ping was sent; and it
//! reports `Expired` long after the server has given our nodes to others (7/5 of the timeout). So
//! each session asks one cheap question of its own per eighth of its TTL, unless other requests have
//! been answered meanwhile. Any request keeps the session alive at the server, so an answer proves
//! that it lives until the question's send time plus the session timeout.
//!
//! The crate pings when nothing was sent for 3/20 of the timeout, so these questions are instead of
//! its pings, and cost nothing more. Asking less often would: locks then survive shorter outages.

use std::sync::{Arc, Weak};

use lock_core::{Clock, trace};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use zookeeper_client::{Error as ZkError, SessionState, StateWatcher};

use crate::{
    error::STORE,
    nodelay,
    session::{End, Exchange, Session},
};

/// Extends the locks of a session until it is over or dropped.
pub(crate) async fn beat(
    session: Weak<Session>,
    over: CancellationToken,
    reconnected: Arc<Notify>,
) {
    loop {
        let due = session.upgrade().map(|alive| alive.confirmed() + alive.ttl() / 8);
        let Some(mut pause) = due.map(|due| due.since(Clock::Boot.now())) else { return };
        let answer = if pause.is_zero() { ask(&session, &over).await } else { None };
        let Some(alive) = session.upgrade() else { return };
        if let Some(Err(error)) = answer {
            trace::renewal_failed(STORE, &error);
            // A request that is sent while the connection is down waits for the next one.
            pause = alive.ttl() / 100;
        }
        alive.extend_all();
        drop(alive);
        tokio::select! {
            () = over.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
            () = reconnected.notified() => {}
        }
    }
}

/// Asks a cheap question; `None` if the session's last sure moment passed before the answer.
///
/// Whoever counts the references to a session must not take this one for a user of it.
async fn ask(session: &Weak<Session>, over: &CancellationToken) -> Option<Result<(), ZkError>> {
    let alive = session.upgrade()?;
    let Exchange { client, sent, .. } = alive.begin().ok()?;
    let last_moment = alive.confirmed() + alive.ttl();
    drop(alive);
    tokio::select! {
        biased;
        answer = client.check_stat("/") => {
            session.upgrade()?.replied(sent, &answer);
            Some(answer.map(drop))
        }
        () = over.cancelled() => None,
        () = Clock::Boot.sleep_until(last_moment) => {
            let alive = session.upgrade()?;
            // Other requests may have been answered meanwhile.
            if Clock::Boot.now() >= alive.confirmed() + alive.ttl() {
                alive.finish(End::Silent);
            }
            None
        }
    }
}

/// Follows the client crate's view of the session to its end.
pub(crate) async fn follow(
    session: Weak<Session>,
    mut states: StateWatcher,
    terminated: CancellationToken,
    reconnected: Arc<Notify>,
    ports: Arc<[u16]>,
) {
    loop {
        match states.changed().await {
            SessionState::Disconnected => {
                trace::disconnected(STORE, &"the connection broke; the session is kept");
            }
            SessionState::SyncConnected | SessionState::ConnectedReadOnly => {
                nodelay::set(&ports).await;
                trace::connected(STORE);
                reconnected.notify_one();
            }
            // `Closed` comes after our own end of it, and that counted first.
            SessionState::AuthFailed | SessionState::Closed | SessionState::Expired => break,
        }
    }
    if let Some(session) = session.upgrade() {
        session.finish(End::Ended);
    }
    terminated.cancel();
}
