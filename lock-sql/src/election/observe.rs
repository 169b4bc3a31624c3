//! Tells observers which attempt leads, and its newest value. A push, a change by this process or
//! the time make an observer look; values between two looks are left out.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use lock_core::{
    Error, FencingToken, Holder, Kind, Leader, LockName, Observed, Result,
    deadline::jitter,
    keep::{self, limits::UNREAD, observe::tell, wait::Waits},
};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};

use super::observers::Bell;
use crate::{
    error::{self, is_final},
    layout::{dialect::Dialect, row::Row},
    session::Session,
    wire::{failure::Failure, turns::Rank},
};

/// How long one look waits for its answer.
const LIMIT: Duration = Duration::from_secs(2);
/// Pause between two looks at a database that does not answer.
const PAUSE: Duration = Duration::from_millis(100);

/// Longest pause between two looks of an observer.
fn pace(dialect: Dialect) -> Duration {
    match dialect {
        Dialect::Sqlite => Duration::from_millis(50),
        Dialect::MySql => Duration::from_millis(250),
        // Changes are pushed, but the death of a leader is not.
        Dialect::Postgres => Duration::from_secs(2),
    }
}

/// Observes a name.
pub(crate) async fn observe(
    session: &Arc<Session>,
    name: &LockName,
) -> Result<mpsc::Receiver<Observed>> {
    let bell = session.observers.bell(name);
    session.listen();
    let mut observer = Observer {
        session: Arc::downgrade(session),
        dialect: session.dialect(),
        pace: pace(session.paced_as()),
        name: name.clone(),
        rung: bell.subscribe(),
        _bell: bell,
        told: None,
    };
    let first = Box::pin(keep::observe::first(session.store(), LIMIT * 2, observer.look())).await?;
    let (out, observed) = mpsc::channel(UNREAD);
    tokio::spawn(tell(observer, first, out));
    Ok(observed)
}

struct Observer {
    session: Weak<Session>,
    dialect: Dialect,
    pace: Duration,
    name: LockName,
    /// Keeps a ring that comes while nothing waits for it.
    rung: watch::Receiver<()>,
    _bell: Arc<Bell>,
    /// What it was told last: a token with the version of a value, or that there is no leader.
    told: Option<Option<(u64, u64)>>,
}

impl keep::observe::Observer for Observer {
    async fn changes(&mut self) -> Result<Vec<Option<Leader>>> {
        let _ = timeout(jitter(self.pace), self.rung.changed()).await;
        self.look().await
    }
}

impl Observer {
    /// Looks until the database answers. Returns the change, if there is one.
    async fn look(&mut self) -> Result<Vec<Option<Leader>>> {
        loop {
            let closed = || Error::closed(self.dialect.store());
            let session = self.session.upgrade().ok_or_else(closed)?;
            let observe = session.script().observe(&self.name);
            let answer = session.database.run(Rank::Ask, &observe, LIMIT).await;
            drop(session);
            match answer {
                Ok((_, rows)) => {
                    let first = rows.entries.into_iter().next().filter(is_leader);
                    let now = first.as_ref().map(|row| (row.token, row.version));
                    let is_new = self.told.replace(now) != Some(now);
                    return Ok(is_new.then(|| first.map(leader)).into_iter().collect());
                }
                Err(failure) if failure.is_final() => {
                    return Err(failure.unsent(self.dialect, "observe"));
                }
                Err(Failure::Refused(why)) if is_final(self.dialect, &why) => {
                    return Err(error::convert(self.dialect, "observe", why));
                }
                Err(_) => drop(timeout(jitter(PAUSE), self.rung.changed()).await),
            }
        }
    }
}

/// Whether the row holds the lock alone.
fn is_leader(row: &Row) -> bool {
    row.kind == Kind::Exclusive && !row.left.is_zero()
}

fn leader(row: Row) -> Leader {
    let token = FencingToken::new(row.token);
    let holder = Holder::new(row.holder, Some(token)).queued(Some(row.since)).granted(row.granted);
    Leader::new(token, row.value.unwrap_or_default(), holder)
}
