//! Pushes of PostgreSQL, passed on to waiting attempts and observers.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use lock_core::{Clock, LockName, keep::backoff::Backoff, trace};
use sqlx::{
    Executor,
    postgres::{PgListener, PgNotification},
};
use tokio::{sync::Notify, time::timeout};
use uuid::Uuid;

use crate::{
    session::Session,
    wire::{
        postgres::{self, pushes::Pushes},
        script::OBSERVERS,
    },
};

/// Pause between attempts to connect.
const BACKOFF: Backoff = Backoff::new(Duration::from_millis(10), Duration::from_secs(1));
/// Time limit of an attempt to connect, unless the configuration names one, and of the answer that
/// shows that the connection is there.
const LIMIT: Duration = Duration::from_secs(2);
/// How long the connection may be quiet while there are attempts. Then it must answer: nothing else
/// shows that its other end is gone.
const QUIET: Duration = Duration::from_secs(10);

/// Listens, and connects again whenever the connection is lost. Ends when it is aborted.
pub(crate) fn run(session: &Arc<Session>, pushes: &Pushes) -> impl Future<Output = ()> + use<> {
    let (hosts, broken) = (pushes.hosts.clone(), pushes.broken.clone());
    let (id, session) = (session.id, Arc::downgrade(session));
    async move {
        let (mut pause, mut first) = (BACKOFF, true);
        loop {
            let listener = Box::pin(postgres::listen(id, &hosts, LIMIT, first)).await;
            first = false;
            match listener {
                Ok(listener) => {
                    pause = BACKOFF;
                    Box::pin(listen(&session, listener, &broken)).await;
                }
                Err(_) => pause.wait().await,
            }
        }
    }
}

/// Passes pushes on until the connection is lost.
async fn listen(session: &Weak<Session>, mut listener: PgListener, broken: &Notify) {
    // Earlier pushes were missed.
    match session.upgrade() {
        Some(session) => {
            session.ring_all();
            tokio::spawn(async move { session.check_held().await });
        }
        None => return,
    }
    let lost = loop {
        let pushed = tokio::select! {
            pushed = listener.try_recv() => pushed,
            () = broken.notified() => return,
            () = Clock::Boot.sleep(QUIET) => {
                let is_used = session.upgrade().is_some_and(|it| it.book().attempts.all().next().is_some());
                if !is_used {
                    continue;
                }
                match timeout(LIMIT, listener.execute("")).await {
                    Ok(Ok(_)) => continue,
                    Ok(Err(error)) => break error.to_string(),
                    Err(_) => break "the connection for pushes is silent".to_owned(),
                }
            }
        };
        match pushed {
            Ok(Some(push)) => match session.upgrade() {
                Some(session) => heard(&session, &push),
                None => return,
            },
            Ok(None) => break "the connection for pushes was closed".to_owned(),
            Err(error) => break error.to_string(),
        }
    };
    trace::disconnected("postgres", &lost);
}

fn heard(session: &Session, push: &PgNotification) {
    let payload = push.payload();
    if let Some(attempt) = payload.strip_prefix('-') {
        let Ok(attempt) = Uuid::try_parse(attempt) else { return };
        if let Some(attempt) = session.book().attempts.find(attempt) {
            attempt.revoked(Clock::Boot.now());
        }
    } else if let Some(name) = name(payload) {
        match push.channel() {
            OBSERVERS => session.observers.ring(&name),
            _ => session.ring(&name),
        }
    }
}

/// Reads the lock's name in a push.
fn name(hex: &str) -> Option<LockName> {
    // A sign is no digit, but `from_str_radix` accepts it.
    let is_hex = hex.bytes().all(|digit| digit.is_ascii_hexdigit());
    let pairs = hex.as_bytes().chunks_exact(2).take_while(|_| is_hex);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes: Option<Vec<_>> = pairs.map(byte).collect();
    LockName::new(String::from_utf8(bytes?).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        assert_eq!(name("61c3a9"), LockName::new("aé").ok());
        for odd in ["", "6", "zz", "ff", "+1"] {
            assert_eq!(name(odd), None, "{odd}");
        }
    }
}
