//! Requests of a session, and what their answers prove.
//!
//! Reads and writes are told apart here and nowhere else: see `session/proof.rs`.

use std::sync::Arc;

use futures_util::TryFutureExt;
use lock_core::Instant;
use tokio::sync::OwnedSemaphorePermit;
use zookeeper_client::{
    Client, CreateOptions, CreateSequence, Error as ZkError, MultiWriteResult, MultiWriter,
    OneshotWatcher, Stat,
};

use crate::error;

/// Counts the answers of a session's requests.
pub(crate) trait Answers: Send + Sync {
    /// Counts a read that was sent at `sent` and is answered now.
    fn read(&self, sent: Instant);

    /// Counts a write that was sent at `sent` and is answered now.
    fn written(&self, sent: Instant);
}

/// One or more requests that are sent now. Each is sent when its method is called, and its answer
/// counts when the future returns it.
pub(crate) struct Exchange {
    answers: Arc<dyn Answers>,
    client: Client,
    sent: Instant,
    /// The place of an acquire or a look among the requests in flight.
    _turn: Option<OwnedSemaphorePermit>,
}

pub(crate) type Answer<T> = Result<T, ZkError>;

/// What a node is like, and the watch that tells of the next change.
pub(crate) type Watched<T> = Answer<(T, OneshotWatcher)>;

impl Exchange {
    /// Requests that are sent after `sent`.
    pub(crate) fn new(
        answers: Arc<dyn Answers>,
        client: Client,
        sent: Instant,
        turn: Option<OwnedSemaphorePermit>,
    ) -> Self {
        Self { answers, client, sent, _turn: turn }
    }

    /// When the requests are sent, at the earliest.
    pub(crate) fn sent(&self) -> Instant {
        self.sent
    }

    async fn read<T>(&self, reply: impl Future<Output = Answer<T>>) -> Answer<T> {
        let reply = reply.await;
        if reply.as_ref().err().is_none_or(error::is_an_answer) {
            self.answers.read(self.sent);
        }
        reply
    }

    async fn written<T>(&self, reply: impl Future<Output = Answer<T>>) -> Answer<T> {
        let reply = reply.await;
        if reply.as_ref().err().is_none_or(error::is_an_answer) {
            self.answers.written(self.sent);
        }
        reply
    }

    pub(crate) fn list(&self, directory: &str) -> impl Future<Output = Answer<Vec<String>>> + Send {
        self.read(self.client.list_children(directory))
    }

    /// Lets the requests after it see every write that was sent before, over any connection. It is
    /// not counted as an answer.
    pub(crate) fn sync(&self, path: &str) -> impl Future<Output = Answer<()>> + Send {
        self.client.sync(path)
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

    pub(crate) fn watch_stat(&self, path: &str) -> impl Future<Output = Watched<Option<Stat>>> {
        self.read(self.client.check_and_watch_stat(path))
    }

    pub(crate) fn watch_data(&self, path: &str) -> impl Future<Output = Watched<(Vec<u8>, Stat)>> {
        let data = self.read(self.client.get_and_watch_data(path));
        data.map_ok(|(data, stat, watcher)| ((data, stat), watcher))
    }

    pub(crate) fn watch_children(&self, path: &str) -> impl Future<Output = Watched<Vec<String>>> {
        self.read(self.client.list_and_watch_children(path))
    }

    pub(crate) fn create<'f>(
        &'f self,
        path: &'f str,
        data: &'f [u8],
        options: &'f CreateOptions<'f>,
    ) -> impl Future<Output = Answer<(Stat, CreateSequence)>> + Send + 'f {
        self.written(self.client.create(path, data, options))
    }

    pub(crate) fn delete(&self, path: &str) -> impl Future<Output = Answer<()>> + Send {
        self.written(self.client.delete(path, None))
    }

    /// Writes data if the node has this version; without one, whichever it has.
    pub(crate) fn set_data(
        &self,
        path: &str,
        data: &[u8],
        version: Option<i32>,
    ) -> impl Future<Output = Answer<Stat>> + Send {
        self.written(self.client.set_data(path, data, version))
    }

    /// Makes a directory and all directories above it, one after the other.
    pub(crate) async fn mkdir(&self, path: &str, options: &CreateOptions<'_>) -> Answer<()> {
        self.read(self.client.mkdir(path, options)).await
    }

    /// A write that changes nothing: it asks the leader and a majority whether a node exists.
    pub(crate) fn confirm(&self, path: &str) -> impl Future<Output = Answer<()>> + Send {
        let mut multi = self.client.new_multi_writer();
        let added = multi.add_check_version(path, -1);
        let commit = self.commit(multi);
        async move {
            added?;
            commit.await.map(drop)
        }
    }

    /// Begins a transaction, which [`commit`](Self::commit) sends.
    pub(crate) fn transaction(&self) -> MultiWriter<'_> {
        self.client.new_multi_writer()
    }

    /// Sends a transaction, which is done as a whole or not at all.
    pub(crate) fn commit(
        &self,
        mut multi: MultiWriter<'_>,
    ) -> impl Future<Output = Answer<Vec<MultiWriteResult>>> + Send {
        let reply = multi.commit();
        // If the leader found one of the writes impossible, a majority knows. But it also refuses
        // each write if the session is over.
        self.written(async { reply.await.map_err(ZkError::from) })
    }
}
