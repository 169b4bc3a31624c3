//! Tells observers which attempt leads. An observer looks at the database, which keeps the values
//! that it may have missed.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use lock_core::{
    FencingToken, Holder, Kind, Leader, LockName, Observed, Result,
    deadline::jitter,
    keep::{self, limits::UNREAD, observe::tell, wait::Waits},
};
use tokio::{
    sync::{Notify, mpsc},
    time::timeout,
};

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
///
/// # Errors
///
/// Same as [`DistributedLock::observe`](lock_core::DistributedLock::observe).
pub(crate) async fn observe(
    session: &Arc<Session>,
    name: &LockName,
) -> Result<mpsc::Receiver<Observed>> {
    let bell = session.waiters.observers.add(name);
    session.listen();
    let mut observer = Observer {
        session: Arc::downgrade(session),
        dialect: session.dialect(),
        name: name.clone(),
        bell,
        known: Known::default(),
    };
    let first = keep::observe::first(session.store(), LIMIT * 2, observer.look()).await?;
    let (out, observed) = mpsc::channel(UNREAD);
    tokio::spawn(tell(observer, first, out));
    Ok(observed)
}

struct Observer {
    session: Weak<Session>,
    dialect: Dialect,
    name: LockName,
    bell: Arc<Notify>,
    known: Known,
}

impl keep::observe::Observer for Observer {
    async fn changes(&mut self) -> Result<Vec<Option<Leader>>> {
        // The bell keeps a ring that comes while nothing waits for it.
        let _ = timeout(jitter(pace(self.dialect)), self.bell.notified()).await;
        self.look().await
    }
}

impl Observer {
    /// Looks until the database answers. Returns the changes.
    ///
    /// # Errors
    ///
    /// An error that does not pass; [`Error::Closed`] if the session has ended.
    async fn look(&mut self) -> Result<Vec<Option<Leader>>> {
        loop {
            let closed = || error::closed(self.dialect);
            let session = self.session.upgrade().ok_or_else(closed)?;
            let Known { token, version, .. } = self.known;
            let observe = session.script().observe(&self.name, token, version);
            let answer = session.database.run(Rank::Ask, &observe, LIMIT).await;
            drop(session);
            match answer {
                Ok((_, rows)) => return Ok(self.known.looked(rows.entries)),
                Err(Failure::Closed) => return Err(closed()),
                Err(Failure::Barred(error)) => return Err(error),
                Err(Failure::Refused(why)) if is_final(self.dialect, &why) => {
                    return Err(error::convert(self.dialect, "observe", why));
                }
                Err(_) => drop(timeout(jitter(PAUSE), self.bell.notified()).await),
            }
        }
    }
}

/// The newest state that an observer was told.
#[derive(Debug, Default)]
struct Known {
    looked: bool,
    token: u64,
    version: u64,
    /// Whether the attempt with this token still leads.
    leads: bool,
}

impl Known {
    /// Returns the changes in an answer: earlier values of leaders, and then the first of the
    /// queue, if there is one. The very first answer yields the present state only.
    fn looked(&mut self, rows: Vec<Row>) -> Vec<Option<Leader>> {
        let mut changes = Vec::new();
        let leads = rows.last().is_some_and(is_leader);
        for row in rows {
            let said = !row.attempt.is_nil();
            if said && !is_leader(&row) {
                continue;
            }
            if row.token != self.token && self.leads {
                changes.push(None);
            }
            let new = (row.token, row.version) > (self.token, self.version);
            (self.token, self.version, self.leads) = (row.token, row.version, true);
            if new {
                changes.push(Some(leader(row)));
            }
        }
        if !leads && std::mem::take(&mut self.leads) {
            changes.push(None);
        }
        if !std::mem::replace(&mut self.looked, true) {
            changes = vec![changes.pop().flatten()];
        }
        changes
    }
}

/// Whether the row holds the lock alone. An earlier value of a leader has the nil attempt.
fn is_leader(row: &Row) -> bool {
    !row.attempt.is_nil() && row.kind == Kind::Exclusive && !row.left.is_zero()
}

fn leader(row: Row) -> Leader {
    let token = FencingToken::new(row.token);
    let holder = Holder::new(row.holder, Some(token)).queued(Some(row.since)).granted(row.granted);
    Leader::new(token, row.value.unwrap_or_default(), holder)
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use uuid::Uuid;

    use super::*;

    fn row(token: u64, version: u64, leads: bool) -> Row {
        Row {
            name: b"n".to_vec(),
            token,
            attempt: if leads { Uuid::from_u128(1) } else { Uuid::nil() },
            kind: Kind::Exclusive,
            left: Duration::from_secs(u64::from(leads)),
            holder: None,
            value: Some(format!("{token}.{version}").into_bytes()),
            version,
            since: SystemTime::UNIX_EPOCH,
            granted: None,
        }
    }

    fn told(known: &mut Known, rows: &[(u64, u64, bool)]) -> Vec<Option<String>> {
        let rows = rows.iter().map(|(t, v, leads)| row(*t, *v, *leads)).collect();
        let value = |leader: Leader| String::from_utf8(leader.value).unwrap();
        known.looked(rows).into_iter().map(|change| change.map(value)).collect()
    }

    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    #[test]
    fn every_value_is_told_once_and_in_order() {
        let mut known = Known::default();
        assert_eq!(told(&mut known, &[(3, 1, false), (4, 0, true)]), [some("4.0")]);
        assert_eq!(told(&mut known, &[(4, 0, true)]), []);
        assert_eq!(told(&mut known, &[(4, 1, false), (4, 2, true)]), [some("4.1"), some("4.2")]);
        assert_eq!(told(&mut known, &[]), [None]);
        assert_eq!(
            told(&mut known, &[(5, 0, false), (5, 1, false), (7, 0, true)]),
            [some("5.0"), some("5.1"), None, some("7.0")]
        );
        assert_eq!(told(&mut known, &[(7, 1, false)]), [some("7.1"), None]);
        assert_eq!(told(&mut known, &[]), []);
    }

    #[test]
    fn the_first_look_tells_of_this_moment_only() {
        assert_eq!(told(&mut Known::default(), &[(3, 1, false)]), [None]);
        assert_eq!(told(&mut Known::default(), &[]), [None]);
    }
}
