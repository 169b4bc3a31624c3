//! Requests of a session, and what their answers prove.
//!
//! Reads and writes are told apart here and nowhere else: see `session/proof.rs`.
//!
//! A server answers a session in order, so a request waits for all that were sent before. Requests
//! that can come in bursts wait in a lane first, in order and in this process. Renewals, releases
//! and revokes do not.

use std::sync::Arc;

use futures_util::FutureExt;
use lock_core::Instant;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use zookeeper_client::{
    Client, CreateOptions, CreateSequence, Error as ZkError, MultiWriteError, MultiWriteResult,
    MultiWriter, Stat,
};

use crate::{
    error,
    session::deadline::Deadline,
    wire::watches::{Event, Watch, Watched, Watches},
};

/// How many acquires may wait for answers at the same time.
const ACQUIRES: usize = 128;
/// How many tries. They do not wait behind acquires, which may wait themselves.
const TRIES: usize = 32;
/// How many looks: requests of operators and observers, and diagnoses of waits in vain.
const LOOKS: usize = 64;

/// The purpose of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Lane {
    /// Goes before all others.
    First,
    Acquire,
    Try,
    Look,
}

/// The lanes of a session.
#[derive(Debug)]
pub(crate) struct Lanes([Arc<Semaphore>; 3]);

impl Lanes {
    pub(crate) fn new() -> Self {
        Self([ACQUIRES, TRIES, LOOKS].map(|count| Arc::new(Semaphore::new(count))))
    }

    /// Waits for a slot, which is taken until it is dropped. `Lane::First` needs none.
    pub(crate) async fn enter(&self, lane: Lane) -> Option<OwnedSemaphorePermit> {
        let Self([acquires, tries, looks]) = self;
        let slots = match lane {
            Lane::First => return None,
            Lane::Acquire => acquires,
            Lane::Try => tries,
            Lane::Look => looks,
        };
        // They are never closed.
        slots.clone().acquire_owned().await.ok()
    }
}

/// One or more requests that are sent now. Each is sent when its method is called, and its answer
/// counts when the future returns it.
pub(crate) struct Exchange {
    pub(crate) deadline: Arc<Deadline>,
    pub(crate) client: Arc<Client>,
    /// When the requests are sent, at the earliest.
    pub(crate) sent: Instant,
    pub(crate) watches: Arc<Watches>,
    /// The slot of an acquire or a look among the requests in flight.
    pub(crate) _slot: Option<OwnedSemaphorePermit>,
}

pub(crate) type Answer<T> = Result<T, ZkError>;

impl Exchange {
    // No async functions: they would keep the reply's future twice.
    fn read<T>(&self, reply: impl Future<Output = Answer<T>>) -> impl Future<Output = Answer<T>> {
        reply.inspect(move |reply| self.hear(reply.as_ref().err(), false))
    }

    fn write<T>(&self, reply: impl Future<Output = Answer<T>>) -> impl Future<Output = Answer<T>> {
        reply.inspect(move |reply| self.hear(reply.as_ref().err(), true))
    }

    fn hear(&self, failure: Option<&ZkError>, writes: bool) {
        if failure.is_none_or(error::is_an_answer) {
            self.deadline.count(self.sent, writes);
        }
    }

    pub(crate) fn list(&self, directory: &str) -> impl Future<Output = Answer<Vec<String>>> + Send {
        self.read(self.client.list_children(directory))
    }

    /// Lets the requests after it see every write that was sent before, over any connection. It is
    /// not counted as an answer.
    pub(crate) fn sync(&self, path: &str) -> impl Future<Output = Answer<()>> + Send {
        self.client.sync(path)
    }

    /// Sends a `sync`, and a read right behind it, which sees every write that was sent before.
    pub(crate) async fn after_sync<T, F: Future<Output = Answer<T>>>(
        &self,
        path: &str,
        read: impl FnOnce() -> F,
    ) -> Answer<T> {
        // The read may be sent when it is called.
        let synced = self.sync(path);
        match tokio::join!(synced, read()) {
            // Also the answer after the end of the client's runtime, so it must not be tried again
            // at once.
            (Err(error), _) if error::may_succeed_later(&error) => Err(error),
            (_, read) => read,
        }
    }

    pub(crate) fn stat(&self, path: &str) -> impl Future<Output = Answer<Option<Stat>>> + Send {
        self.read(self.client.check_stat(path))
    }

    pub(crate) fn data(&self, path: &str) -> impl Future<Output = Answer<(Vec<u8>, Stat)>> + Send {
        self.read(self.client.get_data(path))
    }

    /// Returns the paths of all ephemeral nodes of this session. Not before ZooKeeper 3.6.
    pub(crate) fn own_nodes(&self) -> impl Future<Output = Answer<Vec<String>>> + Send {
        self.read(self.client.list_ephemerals("/"))
    }

    /// Returns the members of the ensemble; empty on a standalone server.
    pub(crate) fn config(&self) -> impl Future<Output = Answer<(Vec<u8>, Stat)>> + Send {
        self.read(self.client.get_config())
    }

    /// Watches the end of an ephemeral node. Such a node has no children, so a watch on them tells
    /// of nothing else. [`ZkError::NoNode`] if it has ended.
    pub(crate) async fn watch_end(&self, path: &str, watched: Watched) -> Answer<Watch> {
        Ok(self.watch_children(path, watched).await?.1)
    }

    /// Reads a node, and watches its data and its end. [`ZkError::NoNode`] if it has ended.
    pub(crate) async fn watch_data(
        &self,
        path: &str,
        watched: Watched,
    ) -> Answer<((Vec<u8>, Stat), Watch)> {
        let Some(room) = self.watches.take(path, watched) else {
            return Ok((self.data(path).await?, Watch(None)));
        };
        let (data, stat, watcher) = self.read(self.client.get_and_watch_data(path)).await?;
        Ok(((data, stat), Watch(Some((watcher, room)))))
    }

    /// Lists a directory, and watches which entries come and go.
    pub(crate) async fn watch_children(
        &self,
        path: &str,
        watched: Watched,
    ) -> Answer<(Vec<String>, Watch)> {
        let Some(room) = self.watches.take(path, watched) else {
            return Ok((self.list(path).await?, Watch(None)));
        };
        let (children, watcher) = self.read(self.client.list_and_watch_children(path)).await?;
        Ok((children, Watch(Some((watcher, room)))))
    }

    /// Looks whether a node exists, and watches its creation or end.
    pub(crate) async fn watch_stat(
        &self,
        path: &str,
        watched: Watched,
    ) -> Answer<(Option<Stat>, Watch)> {
        let Some(room) = self.watches.take(path, watched) else {
            return Ok((self.stat(path).await?, Watch(None)));
        };
        let (stat, watcher) = self.read(self.client.check_and_watch_stat(path)).await?;
        Ok((stat, Watch(Some((watcher, room)))))
    }

    /// Watches a node, which may not exist, as long as the session lives: also without room.
    pub(crate) fn watch_always(&self, path: &str) -> impl Future<Output = Answer<Event>> + Send {
        let watched = self.read(self.client.check_and_watch_stat(path));
        async move {
            let (_, watcher) = watched.await?;
            Ok(Event::new(async move { watcher.changed().await.event_type }))
        }
    }

    pub(crate) fn create<'f>(
        &'f self,
        path: &'f str,
        data: &'f [u8],
        options: &'f CreateOptions<'f>,
    ) -> impl Future<Output = Answer<(Stat, CreateSequence)>> + Send + 'f {
        self.write(self.client.create(path, data, options))
    }

    pub(crate) fn delete(&self, path: &str) -> impl Future<Output = Answer<()>> + Send {
        self.write(self.client.delete(path, None))
    }

    /// Writes data if the node has this version; without one, whichever it has.
    pub(crate) fn set_data(
        &self,
        path: &str,
        data: &[u8],
        version: Option<i32>,
    ) -> impl Future<Output = Answer<Stat>> + Send {
        self.write(self.client.set_data(path, data, version))
    }

    /// Makes a directory and all directories above it, one after the other.
    pub(crate) async fn mkdir(&self, path: &str, options: &CreateOptions<'_>) -> Answer<()> {
        self.read(self.client.mkdir(path, options)).await
    }

    /// A write that changes nothing: it asks the leader and a majority whether a node exists.
    pub(crate) fn ask_leader(&self, path: &str) -> impl Future<Output = Answer<()>> + Send {
        let mut multi = self.client.new_multi_writer();
        let added = multi.add_check_version(path, -1);
        let commit = self.commit(multi);
        commit.map(move |done| added.and(done.map(drop).map_err(ZkError::from)))
    }

    /// Begins a transaction, which [`commit`](Self::commit) sends.
    pub(crate) fn transaction(&self) -> MultiWriter<'_> {
        self.client.new_multi_writer()
    }

    /// Sends a transaction, which is done as a whole or not at all.
    pub(crate) fn commit(
        &self,
        mut multi: MultiWriter<'_>,
    ) -> impl Future<Output = Result<Vec<MultiWriteResult>, MultiWriteError>> + Send {
        // If the leader found one of the writes impossible, a majority knows. But it also refuses
        // each write if the session is over.
        multi.commit().inspect(move |reply| {
            // The client crate answers one without writes itself.
            if !reply.as_ref().is_ok_and(Vec::is_empty) {
                self.hear(reply.as_ref().err().map(reason), true);
            }
        })
    }
}

fn reason(error: &MultiWriteError) -> &ZkError {
    match error {
        MultiWriteError::RequestFailed { source } => source,
        MultiWriteError::OperationFailed { source, .. } => source,
    }
}
