//! Renewal, by the rule of `proof.rs` and not of `lock_core::keep::renewal`: keeps a session's
//! deadlines moving, and notices its end.
//!
//! The client crate pings the server by itself, but a ping proves nothing (see `proof.rs`), and it
//! reports `Expired` long after the server has given our nodes to others (7/5 of the timeout). So
//! each session sends requests of its own. While it has attempts these are writes that change
//! nothing, which the leader and a majority must carry out. Without attempts, and beside a
//! standalone server, one read per eighth of the TTL takes the place of the crate's pings, and
//! keeps the session alive. How often, and why more often than on other stores, is in `proof.rs`.

use std::{
    future::pending,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::FutureExt;
use lock_core::{Clock, trace};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use zookeeper_client::{Error as ZkError, SessionState, StateWatcher};

use crate::{
    error::{self, Meaning, STORE},
    session::{End, Session, deployment::ask_deployment},
    wire::{nodelay, route::Route},
};

/// How many tries that fail fit into the time between two renewals.
const TRIES: u32 = 8;
/// The pause before a server is asked again whether it stands alone.
const AGAIN: Duration = Duration::from_secs(1);

/// Renews the locks of a session until the session is dropped.
pub(crate) async fn renew(session: Weak<Session>, reconnected: Arc<Notify>) {
    while let Some((due, write)) = session.upgrade().map(|alive| alive.deadline.due()) {
        let mut pause = due.since(Clock::Boot.now());
        let answer = if pause.is_zero() { ask(&session, write).await } else { None };
        let Some(alive) = session.upgrade().filter(|alive| !alive.is_over()) else { return };
        let is_answered = match answer {
            // A refusal counts like any other answer. Another password may be there by now.
            Some(Err(error)) if error::is_an_answer(&error) => {
                if error::meaning(&error) == Meaning::Denied {
                    alive.log_in_anew().await;
                }
                true
            }
            Some(Err(error)) => {
                alive.route.reach.renewal_failed(STORE, &error);
                alive.hear(&error);
                // A request that is sent while the connection is down waits for the next one. One
                // that a busy server refuses is sent a few times before the next is due.
                pause = alive.deadline.pace() / TRIES;
                false
            }
            Some(Ok(())) => true,
            None => false,
        };
        let renewed = alive.renew_all();
        if is_answered {
            alive.route.reach.renewed(STORE, renewed);
        }
        drop(alive);
        let _ = Clock::Boot.timeout(pause, reconnected.notified()).await;
    }
}

/// Sends a renewal; returns `None` if the session's last moment passed before the answer.
///
/// It asks for the locks' directory, which the login can read: the root may belong to others.
///
/// Holds no reference to the session while it waits: a count of references must not take it for a
/// user.
async fn ask(session: &Weak<Session>, write: bool) -> Option<Result<(), ZkError>> {
    let alive = session.upgrade()?;
    let (deadline, exchange) = (alive.deadline.clone(), alive.begin().ok()?);
    let config = alive.config.clone();
    drop(alive);
    let answer = async {
        match write {
            true => exchange.ask_leader(&config.prefix).await,
            false => exchange.stat(&config.prefix).await.map(drop),
        }
    };
    tokio::select! {
        biased;
        answer = answer => Some(answer),
        () = deadline.silence() => {
            session.upgrade()?.finish(End::Silent);
            None
        }
    }
}

/// Asks whether the server stands alone, as long as the session is too short for an ensemble: a
/// question may get no answer, and in an ensemble such a session proves nothing. Never returns.
async fn ask_again(session: Weak<Session>) {
    while session.upgrade().is_some_and(|alive| alive.deadline.must_be_alone()) {
        Clock::Boot.sleep(AGAIN).await;
        ask_deployment(session.clone()).await;
    }
    pending().await
}

/// Follows the client crate's view of the session to its end.
pub(crate) async fn follow(
    session: Weak<Session>,
    mut states: StateWatcher,
    terminated: CancellationToken,
    reconnected: Arc<Notify>,
    route: Arc<Route>,
) {
    let mut asking = ask_again(session.clone()).boxed();
    loop {
        let state = tokio::select! {
            biased;
            state = states.changed() => state,
            () = &mut asking => continue,
        };
        // The next connection may lead to a member of an ensemble. A short break is told as a new
        // connection only.
        asking = pending().boxed();
        let _ = session.upgrade().inspect(|session| {
            session.broke();
            session.deadline.set_standalone(false);
        });
        match state {
            SessionState::Disconnected => {
                let what = route.with_failure("the connection broke; the session is kept");
                trace::disconnected(STORE, &what);
                route.reach.broke(&what);
            }
            SessionState::SyncConnected | SessionState::ConnectedReadOnly => {
                nodelay::set(&route.hosts).await;
                trace::connected(STORE);
                route.reach.works();
                let (now, again) = (session.clone(), session.clone());
                asking = ask_deployment(now).then(|()| ask_again(again)).boxed();
                reconnected.notify_one();
            }
            // `Closed` follows our own end of the session, which counted first.
            SessionState::AuthFailed | SessionState::Closed | SessionState::Expired => break,
        }
    }
    if let Some(session) = session.upgrade() {
        session.finish(End::Ended);
    }
    terminated.cancel();
}
