//! Tells observers of the leader and its newest value.
//!
//! The entry with the lowest sequence leads, and no lower one ever appears. So one watch is enough:
//! on the data of that entry's node, which also tells of its end; on the directory while there is
//! no entry; on the directory's creation while there is no directory.
//!
//! An event says that something has changed, and the look that follows says what is there now: all
//! changes since the last look are one. A server answers a session with nothing that is older than
//! an event or an earlier answer, so only the first look of a session needs a `sync`.

use std::{
    ops::ControlFlow::Break,
    pin::pin,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::OptionFuture;
use lock_core::{
    Clock, Error, Kind, Leader, Observed, Result,
    keep::{self, limits::UNREAD},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use zookeeper_client::{Error as ZkError, EventType, Stat};

use crate::{
    error::STORE,
    layout::{floor::Above, listing, note},
    session::{Session, pool::Sessions},
    wire::{
        requests::{Exchange, Lane},
        watches::{Watch, Watched},
    },
};

/// The pause before another try to reach the store.
const PAUSE: Duration = Duration::from_millis(250);

/// Looks for the leader, and starts a task that sends it and each change until the receiver or the
/// client is gone.
pub(crate) async fn observe(
    sessions: &Arc<Sessions>,
    session: Arc<Session>,
    directory: &str,
) -> Result<mpsc::Receiver<Observed>> {
    let mut observer = Observer {
        sessions: Arc::downgrade(sessions),
        session: Weak::new(),
        over: session.over.clone(),
        ttl: session.ttl(),
        directory: directory.to_owned(),
        watched: None,
    };
    let leader = observer.begin(&session).await?;
    let (out, changes) = mpsc::channel(UNREAD);
    let tell = keep::observe::tell(observer, vec![leader], out);
    sessions.runtime.spawn(sessions.closed.clone().run_until_cancelled_owned(tell));
    Ok(changes)
}

struct Observer {
    sessions: Weak<Sessions>,
    /// It does not keep the session: one with a refused removal must end.
    session: Weak<Session>,
    /// Cancelled when the session is over, or gone.
    over: CancellationToken,
    ttl: Duration,
    directory: String,
    /// The entry that was the first one at the last look, and the watch that tells of a change.
    watched: Option<(Option<String>, Watch)>,
}

impl keep::observe::Observer for Observer {
    async fn changes(&mut self) -> Result<Vec<Option<Leader>>> {
        let (first, watch) = self.watched.take().unzip();
        // Dropped only after the next look, so that a watch on the same node is not removed in
        // between.
        let mut changed = pin!(OptionFuture::from(watch.map(Watch::changed)));
        let event = tokio::select! {
            biased;
            () = self.over.cancelled() => None,
            event = &mut changed => event,
            // An event that never comes must not leave an observer with an old leader for ever.
            () = Clock::Boot.sleep(self.ttl) => None,
        };
        // A known first entry stays the first until its node is gone.
        let first = first.flatten().filter(|_| event != Some(EventType::NodeDeleted));
        loop {
            match self.look_again(first.clone()).await {
                // Or the token floor was raised: the next session looks.
                Err(Error::Unavailable { .. } | Error::PlaceLost { .. }) => {
                    Clock::Boot.sleep(PAUSE).await;
                }
                looked => return looked.map(|leader| vec![leader]),
            }
        }
    }
}

impl Observer {
    /// Looks in the next session if this one is over.
    async fn look_again(&mut self, known: Option<String>) -> Result<Option<Leader>> {
        if let Some(session) = self.session.upgrade().filter(|session| !session.is_over()) {
            let first = match known {
                None => first_of(session.list(&self.directory, Lane::Look).await?),
                known => known,
            };
            return self.look(&session, first).await;
        }
        let sessions = self.sessions.upgrade().ok_or_else(|| Error::closed(STORE))?;
        let session = sessions.any(self.ttl).await?;
        self.begin(&session).await
    }

    /// Looks for the first time in a session. The result is not older than the call, whichever
    /// server this session talks to.
    async fn begin(&mut self, session: &Arc<Session>) -> Result<Option<Leader>> {
        let first = first_of(session.list_after_sync(&self.directory, Lane::Look).await?);
        (self.session, self.over) = (Arc::downgrade(session), session.over.clone());
        self.look(session, first).await
    }

    /// Looks at this entry if it is still the first one, or at the one that has become the first,
    /// and watches it.
    async fn look(
        &mut self,
        session: &Session,
        mut first: Option<String>,
    ) -> Result<Option<Leader>> {
        loop {
            let found = match &first {
                Some(first) => watch_first(session, &self.directory, first).await?,
                None => watch_vacancy(session, &self.directory).await?,
            };
            if let Some((leader, watch)) = found {
                self.watched = Some((first, watch));
                return Ok(leader);
            }
            first = first_of(session.list(&self.directory, Lane::Look).await?);
        }
    }
}

/// A leader, if there is one, and the watch that tells of a change.
type WatchedLeader = (Option<Leader>, Watch);

fn first_of(children: Vec<String>) -> Option<String> {
    listing::in_order(children).into_iter().next()
}

/// Reads and watches the first entry; returns `None` if its node is gone.
async fn watch_first(
    session: &Session,
    directory: &str,
    name: &str,
) -> Result<Option<WatchedLeader>> {
    let path = &format!("{directory}/{name}");
    let watch =
        |exchange: Arc<Exchange>| async move { exchange.watch_data(path, Watched::Leader).await };
    match session.once("observe", Lane::Look, watch).await? {
        Break(Some(((data, stat), watch))) => {
            Ok(Some((leader(name, &data, &stat, session.above("observe")?), watch)))
        }
        _ => Ok(None),
    }
}

/// Watches an empty directory; returns `None` if it has an entry by now.
async fn watch_vacancy(session: &Session, directory: &str) -> Result<Option<WatchedLeader>> {
    let watch = |exchange: Arc<Exchange>| async move {
        match exchange.watch_children(directory, Watched::Leader).await {
            Ok((children, watch)) => Ok((listing::in_order(children).is_empty(), watch)),
            Err(ZkError::NoNode) => {
                let asked = exchange.watch_stat(directory, Watched::Leader).await;
                asked.map(|(stat, watch)| (stat.is_none(), watch))
            }
            Err(error) => Err(error),
        }
    };
    match session.once("observe", Lane::Look, watch).await? {
        Break(Some((true, watch))) => Ok(Some((None, watch))),
        _ => Ok(None),
    }
}

/// Returns the leader if this entry is the first one: `None` if it shares the lock or holds
/// permits. Its token counts from the present floor, also if it is older and about to end: so the
/// tokens of later leaders are above it.
fn leader(name: &str, data: &[u8], stat: &Stat, above: Above) -> Option<Leader> {
    let entry = listing::read(name, data, stat, above);
    let (token, value) = (above.token_of(stat.czxid), note::value(data).to_vec());
    (entry.kind == Kind::Exclusive).then(|| Leader::new(token, value, entry.holder))
}
