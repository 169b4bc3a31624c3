//! Requests that are repeated until their outcome is known.
//!
//! All of them end: with an answer, or with the session, which takes its ephemeral nodes along.

use std::{
    collections::HashMap,
    ops::ControlFlow::{self, Break, Continue},
    sync::Arc,
    time::Duration,
};

use futures_util::future::join_all;
use lock_core::{BoxFuture, Clock, Result, deadline::jitter, keep::poison::lock};
use uuid::Uuid;
use zookeeper_client::{Error as ZkError, Stat};

use crate::{
    error::{self, Meaning},
    layout::{child, floor::Above, listing, path},
    session::{
        Session,
        attempt::{Attempt, Late, Leftover, Node},
        janitor,
    },
    wire::{
        requests::{Answer, Exchange, Lane},
        watches::Event,
    },
};

/// The usual pause before a request is repeated, and that after a server has refused one since it
/// has too many.
const PAUSE: Duration = Duration::from_millis(50);
const THROTTLED: Duration = Duration::from_millis(500);

/// Returns the pause after this failure.
pub(super) fn pause_after(failure: &ZkError) -> Duration {
    if matches!(failure, ZkError::Throttled) { THROTTLED } else { PAUSE }
}

impl Session {
    /// Sends a request when its lane has a free slot. Breaks with the answer, or with `None` if there
    /// is no such node. Continues after a pause if the request is to be repeated. Fails if that is
    /// useless.
    pub(crate) async fn once<T, F: Future<Output = Answer<T>>>(
        &self,
        op: &'static str,
        lane: Lane,
        request: impl FnOnce(Arc<Exchange>) -> F,
    ) -> Result<ControlFlow<Option<T>>> {
        // It keeps its slot for the pause, too: a server that is busy must not get the next ones.
        let exchange = Arc::new(self.begin_in(lane).await?);
        match request(exchange.clone()).await {
            Ok(answer) => Ok(Break(Some(answer))),
            Err(ZkError::NoNode) => Ok(Break(None)),
            Err(error) => self.again(op, error).await.map(Continue),
        }
    }

    /// Sends a request until it is answered; returns `None` if there is no such node.
    pub(crate) async fn answer<T, F: Future<Output = Answer<T>>>(
        &self,
        op: &'static str,
        lane: Lane,
        request: impl Fn(Arc<Exchange>) -> F,
    ) -> Result<Option<T>> {
        loop {
            if let Break(answer) = self.once(op, lane, &request).await? {
                return Ok(answer);
            }
        }
    }

    /// Returns the children of a lock's directory; none if it does not exist.
    pub(crate) async fn list(&self, directory: &str, lane: Lane) -> Result<Vec<String>> {
        let list = |exchange: Arc<Exchange>| async move { exchange.list(directory).await };
        Ok(self.answer("list", lane, list).await?.unwrap_or_default())
    }

    /// Like [`list`](Self::list), but sees every write that was sent before, also over a connection
    /// that is broken by now: the `sync` overtakes none of them on its way through the leader. But
    /// see [`doubt`](Self::doubt).
    pub(crate) async fn list_after_sync(&self, directory: &str, lane: Lane) -> Result<Vec<String>> {
        let list = |exchange: Arc<Exchange>| async move {
            exchange.after_sync(directory, || exchange.list(directory)).await
        };
        Ok(self.answer("list", lane, list).await?.unwrap_or_default())
    }

    /// Expects nodes that an unanswered creation of this attempt may make later than a list behind a
    /// `sync` shows. The janitor removes them.
    ///
    /// An ensemble delivers late what was sent over a server that does not reach the leader for a
    /// moment. The leader refuses it if the session has moved to another server. But a client that
    /// leaves the silent server may first have asked it again, in vain. That wish arrives late, too,
    /// right behind the creation. The leader reads it at once and takes the session for moved back
    /// (`LearnerHandler`), and the creation, which waits its turn (`PrepRequestProcessor`), is
    /// carried out.
    pub(crate) fn doubt(&self, directory: &str, attempt: Uuid) {
        let until = Clock::Boot.now() + self.deadline.lateness();
        self.left.add(Leftover::Late(directory.to_owned(), Late::from([(attempt, until)])));
    }

    /// Looks once for nodes that may have come late, and deletes those by which none of the attempts
    /// waits or holds. Returns the attempts of which more may come.
    pub(super) async fn clear(&self, directory: &str, late: &Late) -> Result<Late> {
        let look = Clock::Boot.now();
        let known = |id: &Uuid| Some((*id, lock(&self.attempts).get(id)?.clone()));
        let own: HashMap<_, _> = late.keys().filter_map(known).collect();
        // Any node may become that of an attempt without one: this look spares all of them.
        let enters = |id: &Uuid| own.get(id).is_some_and(|attempt| attempt.node().is_none());
        let mut more = late.clone();
        more.retain(|id, until| look < *until || enters(id));
        let mut children = self.list_after_sync(directory, Lane::First).await?;
        children.retain(|child| {
            let is_own = |own: &Arc<Attempt>| own.node().is_none_or(|node| node.name() == child);
            let id = child::attempt(child).filter(|id| late.contains_key(id));
            id.is_some_and(|id| !own.get(&id).is_some_and(is_own))
        });
        // Several at a time, and one that is refused does not keep the others.
        let mut result = Ok(());
        for some in children.chunks(janitor::AT_ONCE) {
            let paths: Vec<_> = some.iter().map(|child| format!("{directory}/{child}")).collect();
            let removed = join_all(paths.iter().map(|path| self.remove(path))).await;
            result = removed.into_iter().fold(result, |before, one| before.and(one.map(drop)));
        }
        result.map(|()| more)
    }

    /// Returns the names of all nodes of an attempt, first comer first.
    pub(crate) async fn nodes_of(&self, directory: &str, attempt: Uuid) -> Result<Vec<String>> {
        let mut children = self.list_after_sync(directory, Lane::First).await?;
        children.retain(|child| child::attempt(child) == Some(attempt));
        Ok(listing::in_order(children))
    }

    /// Reads the token floor's record, and watches it: see [`above`](Self::above).
    ///
    /// The `sync` makes it the newest one: after a raise, a server that lags would give the old
    /// record to the session that follows the one that the raise has ended.
    pub(crate) async fn read_record(&self) -> Result<Event> {
        let path = &path::floor_record(&self.config.prefix);
        loop {
            let exchange = self.begin()?;
            let read = || async {
                // In this order, so that the watch tells of each change after the read.
                let (watch, data) = (exchange.watch_always(path), exchange.data(path));
                let (watch, data) = tokio::join!(watch, data);
                match data {
                    Err(ZkError::NoNode) => Ok((watch?, None)),
                    data => Ok((watch?, Some(data?))),
                }
            };
            match exchange.after_sync(path, read).await {
                Ok((changed, data)) => {
                    let above = data.map(|(data, stat)| Above::read(path, &data, &stat));
                    let above = above.transpose()?.unwrap_or_default();
                    // It is read once.
                    let _ = self.record.set((above, changed.clone()));
                    return Ok(changed);
                }
                Err(error) => self.again("token floor", error).await?,
            }
        }
    }

    /// Returns the state of a node; `None` if it does not exist.
    pub(crate) async fn stat(&self, path: &str) -> Result<Option<Stat>> {
        let stat = |exchange: Arc<Exchange>| async move { exchange.stat(path).await };
        Ok(self.answer("exists", Lane::First, stat).await?.flatten())
    }

    /// Returns the data of a node; `None` if it does not exist.
    pub(crate) async fn data(&self, path: &str, lane: Lane) -> Result<Option<Vec<u8>>> {
        let data = |exchange: Arc<Exchange>| async move { Ok(exchange.data(path).await?.0) };
        self.answer("read", lane, data).await
    }

    /// Writes a note into an attempt's node. Returns whether the node is still there.
    pub(crate) async fn write(&self, attempt: &Attempt, note: &[u8]) -> Result<bool> {
        let node = attempt.node().filter(|_| !attempt.has_ended());
        let Some(Node { path, .. }) = node else { return Ok(false) };
        let write =
            |exchange: Arc<Exchange>| async move { exchange.set_data(path, note, None).await };
        let written = self.over.run_until_cancelled(self.answer("write", Lane::First, write)).await;
        Ok(written.ok_or_else(|| self.error("write"))??.is_some())
    }

    /// Deletes a node. Returns whether the node was there, as far as is known. Fails also if the
    /// session ends before: a node of ours goes with it.
    pub(crate) async fn remove(&self, path: &str) -> Result<bool> {
        let mut unanswered = false;
        loop {
            let exchange = self.begin()?;
            let deleted = self.over.run_until_cancelled(exchange.delete(path)).await;
            match deleted.ok_or_else(|| self.error("delete"))? {
                Ok(()) => return Ok(true),
                // Perhaps the request that was not answered has deleted it.
                Err(ZkError::NoNode) => return Ok(unanswered),
                Err(error) => {
                    unanswered |= error::meaning(&error) == Meaning::Unanswered;
                    self.again("delete", error).await?;
                }
            }
        }
    }

    /// Deletes several nodes with one request, and does not repeat it. Returns whether they are
    /// certainly gone.
    pub(crate) async fn remove_all(&self, paths: &[&str]) -> bool {
        let Ok(exchange) = self.begin() else { return false };
        let mut multi = exchange.transaction();
        if paths.iter().any(|path| multi.add_delete(path, None).is_err()) {
            return false;
        }
        let deleted = self.over.run_until_cancelled(exchange.commit(multi)).await;
        deleted.is_some_and(|deleted| deleted.is_ok())
    }

    /// Returns after a pause if the request is to be repeated. Boxed: almost no request needs it,
    /// and each one would have room for it.
    ///
    /// A request that is sent while the connection is down waits in the client for the next
    /// connection. But a client whose runtime is shutting down answers at once, and a loop without
    /// a pause would keep the runtime from its end.
    pub(crate) fn again(&self, op: &'static str, error: ZkError) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.hear(&error);
            match error::meaning(&error) {
                Meaning::Unanswered | Meaning::NotNow if !self.is_over() => {
                    Clock::Boot.sleep(jitter(pause_after(&error))).await;
                    Ok(())
                }
                Meaning::Denied if self.log_in_anew().await => Ok(()),
                Meaning::Over | Meaning::Unanswered | Meaning::NotNow => Err(self.error(op)),
                _ => Err(error::write_failed(op, error)),
            }
        })
    }
}
