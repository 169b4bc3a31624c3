//! The one keep-alive stream of a client: it renews all sessions.

use std::{sync::Arc, time::Duration};

use etcd_client::{LeaseKeepAliveResponse, LeaseKeepAliveStream, LeaseKeeper};
use lock_core::{Clock, Instant, trace};
use tokio::time::sleep;

use crate::{
    connection::{Connection, Pause},
    error::{Failure, Kind, STORE},
    session::{Next, Session},
    sessions::Sessions,
};

/// Renews all sessions until it is aborted.
///
/// A keep-alive is sent a third of the TTL after the last confirmed one. Silence is a failure: etcd
/// answers each one, and when it does not, the stream and the connection below it are given up.
pub(crate) async fn run(sessions: Arc<Sessions>, connection: Arc<Connection>) {
    let mut pause = Pause::new();
    loop {
        let first = wait_for_first(&sessions, &connection).await;
        let mut changes = connection.changes();
        changes.mark_unchanged();
        let generation = connection.member().generation;
        let failure = match open(&sessions, &connection, &first).await {
            Ok((keeper, replies)) => {
                pause = Pause::new();
                answered(&sessions, &first, true);
                // While the stream lives, the session may become idle and make room for another.
                drop(first);
                connection.works();
                tokio::select! {
                    failure = pump(&sessions, &connection, keeper, replies) => failure,
                    // On another member from now on.
                    _ = changes.changed() => None,
                }
            }
            Err(failure) if failure.kind == Kind::LeaseGone => {
                answered(&sessions, &first, false);
                None
            }
            Err(failure) => Some(failure),
        };
        for session in sessions.all() {
            session.unpinged();
        }
        if let Some(failure) = failure {
            trace::renewal_failed(STORE, &failure);
            drop(connection.failed(generation, &failure).await);
            sessions.expire(Clock::Boot.now());
            pause.wait().await;
        }
    }
}

/// The session whose keep-alive is due first, when it is due.
async fn wait_for_first(sessions: &Sessions, connection: &Connection) -> Arc<Session> {
    loop {
        let now = Clock::Boot.now();
        sessions.expire(now);
        let mut wake = Instant::NEVER;
        for session in sessions.all() {
            match session.next(now, connection.heard()) {
                Next::Ping | Next::Silent => return session,
                Next::Wait(at) => wake = wake.min(at),
            }
        }
        wait(sessions, wake.since(now)).await;
    }
}

async fn wait(sessions: &Sessions, time: Duration) {
    tokio::select! {
        () = sleep(time) => {}
        () = sessions.work.notified() => {}
    }
}

/// Opens the stream; its first keep-alive is answered when this returns.
async fn open(
    sessions: &Sessions,
    connection: &Connection,
    session: &Session,
) -> Result<(LeaseKeeper, LeaseKeepAliveStream), Failure> {
    let mut leases = connection.member().lease.clone();
    session.pinged(Clock::Boot.now());
    let mut opening = std::pin::pin!(leases.keep_alive(session.lease));
    loop {
        let now = Clock::Boot.now();
        sessions.expire(now);
        let wake = match session.next(now, connection.heard()) {
            Next::Wait(at) if !session.ended.is_cancelled() => at.since(now),
            _ => return Err(Failure::silent(session.answer_limit())),
        };
        tokio::select! {
            opened = &mut opening => return Ok(opened?),
            () = sleep(wake) => {}
        }
    }
}

/// Sends what is due and takes the answers until something fails. `None` is no failure.
async fn pump(
    sessions: &Sessions,
    connection: &Connection,
    keeper: LeaseKeeper,
    mut replies: LeaseKeepAliveStream,
) -> Option<Failure> {
    loop {
        let wake = match ping_due(sessions, connection, &keeper).await {
            Ok(wake) => wake,
            Err(failure) => return Some(failure),
        };
        tokio::select! {
            reply = replies.message() => match reply {
                Ok(Some(reply)) => take(sessions, &reply),
                Ok(None) => return Some(Failure::new(Kind::Broken, "the keep-alives ended")),
                Err(error) => return Some(error.into()),
            },
            () = wait(sessions, wake) => {}
        }
    }
}

/// Sends the keep-alives that are due, and answers how long to wait for the next.
async fn ping_due(
    sessions: &Sessions,
    connection: &Connection,
    keeper: &LeaseKeeper,
) -> Result<Duration, Failure> {
    let now = Clock::Boot.now();
    sessions.expire(now);
    let mut wake = Instant::NEVER;
    for session in sessions.all() {
        match session.next(now, connection.heard()) {
            Next::Ping => {
                session.pinged(Clock::Boot.now());
                let sender = keeper.sender.clone();
                LeaseKeeper { id: session.lease, sender }.keep_alive().await?;
                wake = wake.min(now + session.answer_limit());
            }
            Next::Silent => return Err(Failure::silent(session.answer_limit())),
            Next::Wait(at) => wake = wake.min(at),
        }
    }
    Ok(wake.since(now))
}

fn take(sessions: &Sessions, reply: &LeaseKeepAliveResponse) {
    if let Some(session) = sessions.by_lease(reply.id()) {
        answered(sessions, &session, reply.ttl() > 0);
    }
}

fn answered(sessions: &Sessions, session: &Arc<Session>, alive: bool) {
    if !alive {
        sessions.gone(session);
    } else if !session.confirm() {
        sessions.expire(Clock::Boot.now());
    }
}
