//! Tells observers of the leader and its values.
//!
//! The entry with the lowest sequence leads, and no lower one ever appears. So one watch is enough:
//! on the data of that entry's node, which also tells of its end; on the directory while there is
//! no entry; on the directory's creation while there is no directory.

use std::{
    ops::ControlFlow::Break,
    pin::pin,
    sync::{Arc, Weak},
    time::Duration,
};

use futures_util::future::OptionFuture;
use lock_core::{
    Clock, Error, FencingToken, Holder, Kind, Leader, Observed, Result,
    keep::{self, limits::UNREAD},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use zookeeper_client::{Error as ZkError, EventType, Stat};

use crate::{
    error::STORE,
    layout::{floor::Above, listing, values},
    session::{Session, pool::Sessions},
    wire::{requests::Exchange, turns::Turn, watches::Watch},
};

/// The pause before another try to reach the store.
const PAUSE: Duration = Duration::from_millis(250);

/// Looks for the leader, and starts a task that sends it and each change until the receiver or the
/// client is gone.
pub(crate) async fn observe(
    sessions: &Arc<Sessions>,
    ttl: Duration,
    directory: String,
) -> Result<mpsc::Receiver<Observed>> {
    let session = sessions.any(ttl).await?;
    // A new call must not get an old answer, whichever server this session talks to.
    let first = first_of(session.list_after_sync(&directory, Turn::Look).await?);
    let sight = look(&session, &directory, first).await?;
    let mut told = Told::default();
    let news = told.news(sight.leader);
    let (weak, watched) = (Arc::downgrade(sessions), Some((sight.first, sight.watch)));
    let (session, over) = (Arc::downgrade(&session), session.over.clone());
    let observer = Observer { sessions: weak, session, over, ttl, directory, told, watched };
    let (out, changes) = mpsc::channel(UNREAD);
    let tell = keep::observe::tell(observer, news, out);
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
    told: Told,
    /// The entry that was the first one at the last look, and the watch that tells of a change.
    watched: Option<(Option<String>, Watch)>,
}

/// The leader that was seen, and the watch that tells of a change.
struct Sight {
    /// The entry that is watched.
    first: Option<String>,
    leader: Option<Seen>,
    watch: Watch,
}

/// The leader, with its newest and earlier values, each with its number.
#[derive(Clone)]
struct Seen {
    /// The transaction that made its node.
    id: i64,
    /// `None` if the token floor was raised since.
    token: Option<FencingToken>,
    holder: Holder,
    values: Vec<(u64, Vec<u8>)>,
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
        let first = first.flatten().filter(|_| event != Some(EventType::NodeDeleted));
        let sight = self.look_again(first).await?;
        self.watched = Some((sight.first, sight.watch));
        Ok(self.told.news(sight.leader))
    }
}

impl Observer {
    /// Looks until the store answers. A known first entry stays the first until its node is gone.
    async fn look_again(&mut self, known: Option<String>) -> Result<Sight> {
        loop {
            match self.look_once(known.clone()).await {
                // Or the token floor was raised: the next session looks.
                Err(Error::Unavailable { .. } | Error::PlaceLost { .. }) => {
                    Clock::Boot.sleep(PAUSE).await;
                }
                looked => return looked,
            }
        }
    }

    /// Looks in the next session if this one is over.
    async fn look_once(&mut self, mut first: Option<String>) -> Result<Sight> {
        if let Some(session) = self.session.upgrade().filter(|session| !session.is_over()) {
            if first.is_none() {
                first = first_of(session.list(&self.directory, Turn::Look).await?);
            }
            return look(&session, &self.directory, first).await;
        }
        let sessions = self.sessions.upgrade().ok_or_else(|| Error::closed(STORE))?;
        let session = sessions.any(self.ttl).await?;
        let first = first_of(session.list_after_sync(&self.directory, Turn::Look).await?);
        (self.session, self.over) = (Arc::downgrade(&session), session.over.clone());
        look(&session, &self.directory, first).await
    }
}

/// Looks at this entry if it is still the first one, or at the one that has become the first.
async fn look(session: &Session, directory: &str, mut first: Option<String>) -> Result<Sight> {
    loop {
        let sight = match first {
            Some(first) => watch_first(session, directory, first).await?,
            None => watch_vacancy(session, directory).await?,
        };
        match sight {
            Some(sight) => return Ok(sight),
            None => first = first_of(session.list(directory, Turn::Look).await?),
        }
    }
}

fn first_of(children: Vec<String>) -> Option<String> {
    listing::in_order(children).into_iter().next()
}

/// Reads and watches the first entry; returns `None` if its node is gone.
async fn watch_first(session: &Session, directory: &str, name: String) -> Result<Option<Sight>> {
    let path = &format!("{directory}/{name}");
    let watch = |exchange: Arc<Exchange>| async move { exchange.watch_data(path).await };
    match session.once("observe", Turn::Look, watch).await? {
        Break(Some(((data, stat), watch))) => {
            let leader = leader(&name, &data, &stat, session.above("observe")?);
            Ok(Some(Sight { first: Some(name), leader, watch }))
        }
        _ => Ok(None),
    }
}

/// Watches an empty directory; returns `None` if it has an entry by now.
async fn watch_vacancy(session: &Session, directory: &str) -> Result<Option<Sight>> {
    let watch = |exchange: Arc<Exchange>| async move {
        match exchange.watch_children(directory).await {
            Ok((children, watch)) => Ok((listing::in_order(children).is_empty(), watch)),
            Err(ZkError::NoNode) => {
                let asked = exchange.watch_stat(directory).await;
                asked.map(|(stat, watch)| (stat.is_none(), watch))
            }
            Err(error) => Err(error),
        }
    };
    match session.once("observe", Turn::Look, watch).await? {
        Break(Some((true, watch))) => Ok(Some(Sight { first: None, leader: None, watch })),
        _ => Ok(None),
    }
}

/// Returns the leader if this entry is the first one: `None` if it shares the lock or holds
/// permits.
fn leader(name: &str, data: &[u8], stat: &Stat, above: Above) -> Option<Seen> {
    let entry = listing::read(name, data, stat, above);
    let token = above.token(stat);
    let values = values::read(data, stat.version);
    let id = stat.czxid;
    (entry.kind == Kind::Exclusive).then_some(Seen { id, token, holder: entry.holder, values })
}

/// The last news that was told.
#[derive(Default)]
struct Told {
    /// `None` before anything was told. Then the leader, if any, and the number of its next value.
    last: Option<Option<(i64, u64)>>,
    /// The number from which the last leader's token counts.
    above: u64,
}

impl Told {
    /// Returns what is new: of a new leader all values that its node still has, but at the first
    /// look only the newest one.
    fn news(&mut self, now: Option<Seen>) -> Vec<Option<Leader>> {
        let Some(Seen { id, token, holder, values }) = now else {
            let known = self.last.replace(None) == Some(None);
            return if known { Vec::new() } else { vec![None] };
        };
        let newest = values.last().map_or(0, |(number, _)| *number);
        let next = match self.last {
            None => newest,
            Some(Some((known, next))) if known == id => next,
            Some(_) => 0,
        };
        self.last = Some(Some((id, next.max(newest + 1))));
        let token = self.token(id, token);
        let news = values.into_iter().filter(|(number, _)| *number >= next);
        news.map(|(_, value)| Some(Leader::new(token, value, holder.clone()))).collect()
    }

    /// Returns the leader's token. If it is not known any more, it counts from the same number as
    /// the last one: no later leader's token is below it.
    fn token(&mut self, id: i64, known: Option<FencingToken>) -> FencingToken {
        let id = id.unsigned_abs();
        if let Some(token) = known {
            self.above = token.value().saturating_sub(id);
        }
        FencingToken::new(self.above.saturating_add(id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(id: i64, first: u64, values: &[&str]) -> Option<Seen> {
        let values = values.iter().map(|value| value.as_bytes().to_vec());
        let values = (first..).zip(values).collect();
        let token = Some(FencingToken::new(id.unsigned_abs()));
        Some(Seen { id, token, holder: Holder::default(), values })
    }

    /// Returns what is told of the last of several sights.
    fn news(sights: &[Option<Seen>]) -> Vec<Option<String>> {
        let mut told = Told::default();
        let news = sights.iter().map(|now| told.news(now.clone())).last().unwrap_or_default();
        let value = |leader: Leader| String::from_utf8(leader.value).unwrap();
        news.into_iter().map(|leader| leader.map(value)).collect()
    }

    fn some(values: &[&str]) -> Vec<Option<String>> {
        values.iter().map(|value| Some((*value).to_owned())).collect()
    }

    #[test]
    fn the_first_look_tells_the_newest_value() {
        assert_eq!(news(&[seen(1, 0, &["a", "b"])]), some(&["b"]));
        assert_eq!(news(&[None]), [None]);
    }

    #[test]
    fn missed_values_are_told_in_order_and_none_twice() {
        let first = seen(1, 0, &["a"]);
        assert_eq!(news(&[first.clone(), seen(1, 0, &["a", "b", "c"])]), some(&["b", "c"]));
        assert_eq!(news(&[first.clone(), first.clone()]), some(&[]));
        assert_eq!(news(&[first, seen(1, 8, &["i", "j"])]), some(&["i", "j"]));
        assert_eq!(news(&[None, None]), []);
    }

    #[test]
    fn all_values_of_the_next_leader_are_told() {
        let (first, second) = (seen(1, 0, &["a", "b"]), seen(2, 0, &["c", "d"]));
        assert_eq!(news(&[first.clone(), second.clone()]), some(&["c", "d"]));
        assert_eq!(news(&[first.clone(), None, second]), some(&["c", "d"]));
        assert_eq!(news(&[first.clone(), None, first]), some(&["a", "b"]));
    }

    #[test]
    fn a_leader_from_before_a_raise_keeps_its_token() {
        let mut told = Told::default();
        let mut token = |id, above: Option<u64>, value: &[&str]| {
            let token = above.map(|above| FencingToken::new(above + i64::unsigned_abs(id)));
            let now = Seen { token, ..seen(id, 0, value).unwrap() };
            told.news(Some(now)).last().map(|leader| leader.as_ref().unwrap().token.value())
        };
        assert_eq!(token(5, None, &["a"]), Some(5), "before any other");
        assert_eq!(token(7, Some(100), &["a"]), Some(107));
        assert_eq!(token(7, None, &["a"]), None, "it was told");
        assert_eq!(token(7, None, &["a", "b"]), Some(107));
        assert_eq!(token(8, None, &["c"]), Some(108));
        assert_eq!(token(9, Some(1000), &["d"]), Some(1009));
    }

    #[test]
    fn an_older_look_tells_nothing() {
        let sights = [seen(1, 0, &["a", "b"]), seen(1, 0, &["a"]), seen(1, 0, &["a", "b"])];
        assert_eq!(news(&sights[..2]), []);
        assert_eq!(news(&sights), []);
    }
}
