//! A stream of watches of a client.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use etcd_client::{
    WatchOptions, WatchRequestSender, WatchResponse, WatchResponseStream, WatchStream,
};
use lock_core::{Clock, keep::poison::lock};
use tokio::sync::Notify;

use crate::{
    error::{Failure, FailureKind},
    wire::{
        connection::{BACKOFF, Connection},
        reads,
        revisions::Mark,
        watches::{Open, Watches},
    },
};

/// A stream that ends sooner than this is opened again after a longer pause each time.
const LASTED: Duration = Duration::from_secs(1);

/// The owner of the watches on one stream, and the state that their messages change.
pub(crate) trait Side: Send {
    /// The common options of all watches. Default: none.
    fn options() -> WatchOptions {
        WatchOptions::new()
    }

    fn watches(&mut self) -> &mut Watches;

    /// Handles a message of the stream.
    /// Fails if the stream is of no more use.
    fn message(&mut self, message: &WatchResponse) -> Result<(), Failure> {
        match self.watches().about(message) {
            Some(id) => self.told(id, message),
            None => Ok(()),
        }
    }

    /// Handles a message about a watch that is wanted.
    fn told(&mut self, id: i64, message: &WatchResponse) -> Result<(), Failure>;

    /// Handles the loss of the stream and of all its watches.
    fn lost(&mut self);
}

/// A side, and its stream.
pub(crate) struct Stream<S> {
    side: Mutex<S>,
    work: Arc<Notify>,
    pub(crate) connection: Arc<Connection>,
}

impl<S: Side> Stream<S> {
    pub(crate) fn new(mut side: S, connection: Arc<Connection>) -> Self {
        let work = side.watches().work.clone();
        Self { side: Mutex::new(side), work, connection }
    }

    pub(crate) fn side(&self) -> MutexGuard<'_, S> {
        lock(&self.side)
    }
}

/// Keeps the stream open while there is something to watch, until it is aborted.
pub(crate) async fn run<S: Side>(stream: Arc<Stream<S>>) {
    let stream = &*stream;
    let (connection, mut pause) = (&stream.connection, BACKOFF);
    loop {
        let first = wait_for_first(stream).await;
        let mut changes = connection.changes();
        let (began, generation) = (Clock::Boot.now(), connection.member().generation);
        let seen = connection.revisions.mark();
        stream.side().watches().generation = generation;
        let failure = match open::<S>(connection, first).await {
            Ok(opened) => {
                let (requests, messages) = opened.split();
                // Sending waits while etcd is slow to read. It must not keep us from reading: etcd
                // would stay slow for ever.
                tokio::select! {
                    // Messages are read before requests are sent.
                    biased;
                    failed = read(stream, messages, seen) => failed.err(),
                    failed = feed(stream, requests) => failed.err(),
                    // On another member from now on.
                    _ = changes.changed() => None,
                }
            }
            Err(failure) => Some(failure),
        };
        stream.side().lost();
        if Clock::Boot.now().since(began) > LASTED {
            pause = BACKOFF;
        }
        if let Some(failure) = failure {
            // If a login is refused, the watches' owners learn it from their next request.
            drop(connection.failed(generation, &failure).await);
            pause.wait().await;
        }
    }
}

async fn wait_for_first<S: Side>(stream: &Stream<S>) -> Open {
    loop {
        if let Some(open) = stream.side().watches().next_open() {
            return open;
        }
        stream.work.notified().await;
    }
}

async fn open<S: Side>(connection: &Connection, first: Open) -> Result<WatchStream, Failure> {
    let mut client = connection.member().client.watch_client();
    let opened = client.watch(&*first.queue, Some(options::<S>(&first)));
    let limit = connection.limits.request;
    match Clock::Boot.timeout(limit, opened).await {
        Some(opened) => opened.map_err(Failure::of_stream),
        None => Err(Failure::silent(limit)),
    }
}

fn options<S: Side>(open: &Open) -> WatchOptions {
    S::options().with_prefix().with_watch_id(open.id).with_start_revision(open.start)
}

/// Sends requests until the stream fails.
async fn feed<S: Side>(
    stream: &Stream<S>,
    mut requests: WatchRequestSender,
) -> Result<Infallible, Failure> {
    loop {
        let (open, close) = {
            let mut side = stream.side();
            (side.watches().next_open(), side.watches().next_close())
        };
        if open.is_none() && close.is_none() {
            stream.work.notified().await;
        }
        if let Some(open) = open {
            requests.watch(&*open.queue, Some(options::<S>(&open))).await?;
        }
        if let Some(id) = close {
            requests.cancel(id).await?;
        }
    }
}

/// Reads messages until the stream fails. Before it was opened, the client had seen `mark`.
async fn read<S: Side>(
    stream: &Stream<S>,
    mut messages: WatchResponseStream,
    mark: Mark,
) -> Result<Infallible, Failure> {
    let ended = || Failure::new(FailureKind::Broken, "the watch stream ended");
    loop {
        let message = messages.message().await?.ok_or_else(ended)?;
        if message.created() {
            reads::doubt(&stream.connection, mark, message.header());
        }
        stream.side().message(&message)?;
    }
}
