//! The one keep-alive stream of a client, which renews all sessions.

use std::sync::Arc;

use etcd_client::{LeaseKeepAliveResponse, LeaseKeepAliveStream, LeaseKeeper};
use lock_core::{Clock, Instant};

use crate::{
    error::{Failure, FailureKind, STORE},
    session::{Session, due::Next, pool::Sessions},
    wire::{
        connection::{BACKOFF, Connection, Word},
        member::ANSWER_LIMIT,
        reads,
        requests::check_login,
        revisions::Mark,
    },
};

/// Renews all sessions until it is aborted.
///
/// A keep-alive is sent a third of the TTL after the last confirmed one. Silence is a failure: etcd
/// answers each keep-alive, and if it does not, the stream and the connection below it are given
/// up.
pub(crate) async fn run(sessions: Arc<Sessions>) {
    let connection = &sessions.connection;
    let mut pause = BACKOFF;
    loop {
        let first = wait_for_first(&sessions).await;
        let mut changes = connection.changes();
        changes.mark_unchanged();
        let (generation, seen) = (connection.member().generation, connection.revisions.mark());
        let failure = match open(&sessions, &first).await {
            Ok((keeper, replies)) => {
                pause = BACKOFF;
                answered(&sessions, &first, true);
                // While the stream lives, the session may become idle and make room for another.
                drop(first);
                connection.works(Word::Leader);
                tokio::select! {
                    failure = pump(&sessions, keeper, replies, seen) => failure,
                    // On another member from now on.
                    _ = changes.changed() => None,
                }
            }
            Err(failure) if failure.kind == FailureKind::LeaseGone => {
                answered(&sessions, &first, false);
                None
            }
            // On another member from now on.
            Err(_) if connection.member().generation != generation => None,
            Err(failure) => Some(failure),
        };
        // A refused login concerns all sessions. Another login may be there at any time.
        let is_one =
            |failure: &&Failure| failure.kind == FailureKind::Denied && !failure.is_login_refused();
        let denied = failure.as_ref().filter(is_one);
        if let Some(denied) = denied.and_then(|_| denied_one(&sessions.all())) {
            denied.set_alone(true);
            tokio::spawn(renew_alone(sessions.clone(), denied));
        }
        for session in sessions.all() {
            session.unpinged();
        }
        if let Some(failure) = failure {
            connection.reach.renewal_failed(STORE, &failure);
            mend(&sessions, generation, failure).await;
            sessions.expire(Clock::Boot.now());
            pause.wait().await;
        }
    }
}

/// Switches to another member or connection, and waits for it no longer than for an answer: a
/// member that is silent at the login must not use up a TTL in which the current one may answer
/// again.
async fn mend(sessions: &Sessions, generation: u64, failure: Failure) {
    let limit = sessions.all().iter().map(|session| session.answer_limit()).min();
    let connection = sessions.connection.clone();
    let mending = tokio::spawn(async move { connection.failed(generation, &failure).await });
    // Beyond the limit it continues in the background.
    drop(Clock::Boot.timeout(limit.unwrap_or(ANSWER_LIMIT), mending).await);
}

/// Returns the session whose keep-alive etcd denied. etcd handles keep-alives in order, and ends
/// the stream at the first one that it denies.
fn denied_one(sessions: &[Arc<Session>]) -> Option<Arc<Session>> {
    let under_way = sessions.iter().filter_map(|session| Some((session.under_way()?, session)));
    under_way.min_by_key(|(pinged, _)| *pinged).map(|(_, session)| session.clone())
}

/// Renews a session on streams of its own, until one keep-alive is confirmed or the session has
/// ended.
async fn renew_alone(sessions: Arc<Sessions>, session: Arc<Session>) {
    while !session.ended.is_cancelled() {
        let (sent, member) = (Clock::Boot.now(), sessions.connection.member());
        let mut leases = member.client.lease_client();
        let renewed = Clock::Boot.timeout(session.answer_limit(), leases.keep_alive(session.lease));
        match renewed.await.map(|renewed| renewed.map_err(Failure::from)) {
            Some(Ok(_)) => {
                confirmed(&sessions, session.confirm_alone(sent));
                return sessions.work.notify_one();
            }
            Some(Err(failure)) if failure.kind == FailureKind::LeaseGone => {
                return sessions.gone(&session);
            }
            Some(Err(failure)) if failure.is_login_refused() => {
                drop(sessions.connection.failed(member.generation, &failure).await);
            }
            // The common stream finds out about the connection.
            _ => {}
        }
        tokio::select! {
            () = Clock::Boot.sleep(session.ttl / 12) => {}
            () = session.ended.cancelled() => {}
        }
    }
}

/// Waits until a keep-alive is due. Returns the due session with the least time left.
async fn wait_for_first(sessions: &Sessions) -> Arc<Session> {
    loop {
        let now = Clock::Boot.now();
        sessions.expire(now);
        let (first, wake) = due_first(&sessions.all(), now, sessions.connection.heard());
        if let Some(first) = first {
            return first;
        }
        wait(sessions, wake).await;
    }
}

/// Returns the due session with the least time left, and when the next other one is due.
fn due_first(
    sessions: &[Arc<Session>],
    now: Instant,
    heard: Instant,
) -> (Option<Arc<Session>>, Instant) {
    let (mut due, mut wake) = (Vec::new(), Instant::NEVER);
    for session in sessions {
        match session.next(now, heard) {
            Next::Ping | Next::Silent => due.push(session),
            Next::Wait(at) => wake = wake.min(at),
        }
    }
    (due.into_iter().min_by_key(|session| session.until()).cloned(), wake)
}

async fn wait(sessions: &Sessions, until: Instant) {
    tokio::select! {
        () = Clock::Boot.sleep_until(until) => {}
        () = sessions.work.notified() => {}
        () = sessions.connection.late.notified() => match sessions.all().first() {
            Some(session) => session.hurry(),
            None => drop(tokio::spawn(ask(sessions.connection.clone()))),
        }
    }
}

/// Asks the member whether it lives, for a client that has nothing to renew.
async fn ask(connection: Arc<Connection>) {
    let member = connection.member();
    let answer = Clock::Boot.timeout(connection.limits.request / 2, check_login(&member)).await;
    if matches!(answer, Some(Ok(()))) && connection.member().generation == member.generation {
        connection.lives();
    }
}

/// Opens the stream. Its first keep-alive is answered when this returns. Gives up when another
/// session cannot wait for it, or when another connection is in use: answers there say nothing
/// about this one.
async fn open(
    sessions: &Sessions,
    session: &Session,
) -> Result<(LeaseKeeper, LeaseKeepAliveStream), Failure> {
    let connection = &sessions.connection;
    let (mut changes, member) = (connection.changes(), connection.member());
    let mut leases = member.client.lease_client();
    let began = Clock::Boot.now();
    session.pinged(began);
    let mut opening = std::pin::pin!(leases.keep_alive(session.lease));
    loop {
        let now = Clock::Boot.now();
        sessions.expire(now);
        let wake = match session.next(now, connection.heard()) {
            Next::Wait(at) if !session.ended.is_cancelled() => at,
            _ => return Err(Failure::silent(session.answer_limit())),
        };
        let others = sessions.all().into_iter().filter(|other| other.lease != session.lease);
        let others = others.map(|other| (other.patience(began), other.answer_limit())).min();
        let (patience, limit) = others.unwrap_or((Instant::NEVER, ANSWER_LIMIT));
        if now >= patience {
            return Err(Failure::silent(limit));
        }
        if *changes.borrow_and_update() > member.generation {
            return Err(Failure::new(FailureKind::Refused, "another connection is in use"));
        }
        tokio::select! {
            opened = &mut opening => return opened.map_err(Failure::of_stream),
            _ = changes.changed() => {}
            () = Clock::Boot.sleep_until(wake.min(patience)) => {}
        }
    }
}

/// Sends due keep-alives and takes the answers until something fails. `None` is no failure. Before
/// the stream was opened, the client had seen `mark`.
async fn pump(
    sessions: &Sessions,
    keeper: LeaseKeeper,
    mut replies: LeaseKeepAliveStream,
    mark: Mark,
) -> Option<Failure> {
    loop {
        let wake = match ping_due(sessions, &keeper).await {
            Ok(wake) => wake,
            Err(failure) => return Some(failure),
        };
        tokio::select! {
            reply = replies.message() => match reply {
                Ok(Some(reply)) => {
                    reads::doubt(&sessions.connection, mark, reply.header());
                    take(sessions, &reply);
                }
                Ok(None) => return Some(Failure::new(FailureKind::Broken, "the keep-alives ended")),
                Err(error) => return Some(Failure::of_stream(error)),
            },
            () = wait(sessions, wake) => {}
        }
    }
}

/// Sends the keep-alives that are due. Returns when to come again.
async fn ping_due(sessions: &Sessions, keeper: &LeaseKeeper) -> Result<Instant, Failure> {
    let now = Clock::Boot.now();
    sessions.expire(now);
    let mut wake = Instant::NEVER;
    for session in sessions.all() {
        match session.next(now, sessions.connection.heard()) {
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
    Ok(wake)
}

fn take(sessions: &Sessions, reply: &LeaseKeepAliveResponse) {
    sessions.connection.lives();
    if let Some(session) = sessions.by_lease(reply.id()) {
        answered(sessions, &session, reply.ttl() > 0);
    }
}

fn answered(sessions: &Sessions, session: &Arc<Session>, alive: bool) {
    if !alive {
        return sessions.gone(session);
    }
    confirmed(sessions, session.confirm());
}

fn confirmed(sessions: &Sessions, locks: Option<usize>) {
    match locks {
        Some(locks) => sessions.connection.reach.renewed(STORE, locks),
        None => sessions.expire(Clock::Boot.now()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn session(lease: i64, seconds: u64, age: u64) -> Arc<Session> {
        let sent = Clock::Boot.now() - Duration::from_secs(age);
        Arc::new(Session::new(lease, Duration::from_secs(seconds), sent))
    }

    #[test]
    fn the_due_session_with_the_least_time_left_goes_first() {
        let now = Clock::Boot.now();
        let sessions = [session(1, 60, 30), session(2, 9, 6), session(3, 9, 1)];
        let (first, wake) = due_first(&sessions, now, now);
        assert_eq!(first.map(|session| session.lease), Some(2));
        assert!(wake < now + Duration::from_secs(3));
    }

    #[test]
    fn a_session_whose_keep_alive_is_denied_does_not_keep_the_others_from_theirs() {
        let now = Clock::Boot.now();
        let sessions = [session(1, 9, 6), session(2, 9, 5)];
        sessions[0].pinged(now);
        sessions[1].pinged(now + Duration::from_nanos(1));
        let denied = denied_one(&sessions).unwrap();
        assert_eq!(denied.lease, 1);
        denied.set_alone(true);
        sessions.iter().for_each(|session| session.unpinged());
        let (first, _) = due_first(&sessions, now, now);
        assert_eq!(first.map(|session| session.lease), Some(2));
    }
}
