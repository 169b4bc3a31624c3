//! Pushes: one connection per client listens.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use lock_core::{LockName, deadline::jitter, trace};
use sqlx::{
    Executor, PgConnection,
    postgres::{PgConnectOptions, PgListener, PgNotification, PgPoolOptions},
    raw_sql,
};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};
use uuid::Uuid;

use super::{STATE, State, is_fit};
use crate::{
    session::Session,
    wire::{own_client::Way, script::OBSERVERS},
};

/// Pauses between attempts to connect grow up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// How long one attempt may take, and an answer that shows that the connection is there.
const LIMIT: Duration = Duration::from_secs(2);

/// Whether pushes still come.
#[derive(Debug, Default)]
pub(super) struct Doubts {
    /// Rings when another connection broke: this one may be broken, too.
    pub(super) broken: Notify,
    /// Rings from time to time: nothing tells that the other end of a connection is gone, except
    /// that it does not answer.
    pub(super) silent: Notify,
}

/// Listens, and connects again whenever the connection is lost. Ends when it is aborted.
pub(super) fn run(
    session: &Arc<Session>,
    way: Way<PgConnection>,
    doubts: Arc<Doubts>,
) -> impl Future<Output = ()> + use<> {
    let (id, session) = (session.id, Arc::downgrade(session));
    async move {
        let mut pause = FIRST_PAUSE;
        loop {
            match timeout(LIMIT, connect(id, way())).await {
                Ok(Ok(listener)) => {
                    pause = FIRST_PAUSE;
                    listen(&session, listener, &doubts).await;
                }
                Ok(Err(_)) | Err(_) => {
                    sleep(jitter(pause)).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }
}

async fn connect(id: Uuid, options: PgConnectOptions) -> sqlx::Result<PgListener> {
    let one = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None);
    let mut listener = PgListener::connect_with(&one.connect_lazy_with(options)).await?;
    listener.eager_reconnect(false);
    // It may be the former primary, which pushes nothing.
    let state = State::read(Some(&raw_sql(STATE).fetch_one(&mut listener).await?))?;
    if is_fit(&state).is_err() {
        return Err(sqlx::Error::Io(std::io::Error::other("the server takes no writes")));
    }
    listener.listen(&format!("distlock_v1_{}", id.simple())).await?;
    listener.listen(OBSERVERS).await?;
    Ok(listener)
}

/// Passes pushes on until the connection is lost.
async fn listen(session: &Weak<Session>, mut listener: PgListener, doubts: &Doubts) {
    // Whatever was pushed before was missed.
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
            () = doubts.broken.notified() => return,
            () = doubts.silent.notified() => match timeout(LIMIT, listener.execute("")).await {
                Ok(Ok(_)) => continue,
                Ok(Err(error)) => break error.to_string(),
                Err(_) => break "the connection for pushes is silent".to_owned(),
            },
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
        let entry = Uuid::try_parse(attempt).ok().and_then(|attempt| session.book().find(attempt));
        if let Some(entry) = entry {
            entry.gone();
        }
    } else if let Some(name) = name(payload) {
        match push.channel() {
            OBSERVERS => session.observers.ring(&name),
            _ => session.ring(&name),
        }
    }
}

fn name(hex: &str) -> Option<LockName> {
    // A sign is no digit, but would be read with the number.
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
