//! A stream of watches of a client.

use std::{sync::Arc, time::Duration};

use etcd_client::{
    GetOptions, WatchOptions, WatchRequestSender, WatchResponse, WatchResponseStream, WatchStream,
};
use lock_core::Clock;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use crate::{
    error::{Failure, FailureKind},
    wire::{
        backoff::Pause,
        connection::{Connection, Word},
        member::ANSWER_LIMIT,
        watches::Open,
    },
};

/// A stream that ends sooner than this is opened again after a longer pause each time.
const LASTED: Duration = Duration::from_secs(1);

/// Those who have watches on one stream.
pub(crate) trait Side: Send + Sync {
    fn connection(&self) -> &Connection;

    /// Notified when there is something to open or to close.
    fn work(&self) -> &Notify;

    /// What all watches have in common.
    fn options(&self) -> WatchOptions;

    /// How often to see whether etcd is there, if nothing else does.
    fn heartbeat(&self) -> Option<Duration>;

    fn next_open(&self) -> Option<Open>;

    fn next_close(&self) -> Option<i64>;

    /// The stream is to be opened on this generation of the connection.
    fn begins(&self, generation: u64);

    /// A message came.
    ///
    /// # Errors
    ///
    /// Why the stream is of no more use.
    fn message(&self, message: &WatchResponse) -> Result<(), Failure>;

    /// The stream is gone, and with it all watches.
    fn lost(&self);
}

/// Keeps the stream open while there is something to watch, until it is aborted.
pub(crate) async fn run<S: Side>(side: Arc<S>) {
    let mut pause = Pause::new();
    loop {
        let first = wait_for_first(&*side).await;
        let connection = side.connection();
        let mut changes = connection.changes();
        changes.mark_unchanged();
        let (began, generation) = (Clock::Boot.now(), connection.member().generation);
        side.begins(generation);
        let failure = match open(&*side, first).await {
            Ok(stream) => {
                let (requests, messages) = stream.split();
                // Sending waits when etcd is slow to take it, and must not keep us from reading:
                // etcd would be slow for ever.
                tokio::select! {
                    // What is told goes before what is asked for.
                    biased;
                    failure = read(&*side, messages) => Some(failure),
                    failure = feed(&*side, requests) => Some(failure),
                    // On another member from now on.
                    _ = changes.changed() => None,
                    () = beat(&*side) => None,
                }
            }
            Err(failure) => Some(failure),
        };
        side.lost();
        if Clock::Boot.now().since(began) > LASTED {
            pause = Pause::new();
        }
        if let Some(failure) = failure {
            // If a login is refused, those who watch find out when they ask.
            drop(connection.failed(generation, &failure).await);
            pause.wait().await;
        }
    }
}

async fn wait_for_first<S: Side>(side: &S) -> Open {
    loop {
        if let Some(open) = side.next_open() {
            return open;
        }
        side.work().notified().await;
    }
}

async fn open<S: Side>(side: &S, first: Open) -> Result<WatchStream, Failure> {
    let mut client = side.connection().member().watch.clone();
    let opened = client.watch(&*first.queue, Some(options(side, &first)));
    match timeout(ANSWER_LIMIT, opened).await {
        Ok(opened) => Ok(opened?),
        Err(_) => Err(Failure::silent(ANSWER_LIMIT)),
    }
}

fn options<S: Side>(side: &S, open: &Open) -> WatchOptions {
    side.options().with_prefix().with_watch_id(open.id).with_start_revision(open.start)
}

/// Asks etcd now and then. What fails is dealt with as for every request.
async fn beat<S: Side>(side: &S) {
    let Some(pause) = side.heartbeat() else { return std::future::pending().await };
    loop {
        sleep(pause).await;
        let anything = GetOptions::new().with_count_only().with_serializable();
        let asked = side.connection().look(Word::Member, |member| {
            let mut kv = member.kv.clone();
            async move { kv.get("\0", Some(anything)).await }
        });
        drop(asked.await);
    }
}

async fn feed<S: Side>(side: &S, mut requests: WatchRequestSender) -> Failure {
    loop {
        match feed_all(side, &mut requests).await {
            Ok(()) => side.work().notified().await,
            Err(failure) => return failure,
        }
    }
}

async fn feed_all<S: Side>(side: &S, requests: &mut WatchRequestSender) -> Result<(), Failure> {
    loop {
        let (open, close) = (side.next_open(), side.next_close());
        if open.is_none() && close.is_none() {
            return Ok(());
        }
        if let Some(open) = open {
            requests.watch(&*open.queue, Some(options(side, &open))).await?;
        }
        if let Some(id) = close {
            requests.cancel(id).await?;
        }
    }
}

async fn read<S: Side>(side: &S, mut messages: WatchResponseStream) -> Failure {
    loop {
        let read = match messages.message().await {
            Ok(Some(message)) => side.message(&message),
            Ok(None) => Err(Failure::new(FailureKind::Broken, "the watch stream ended")),
            Err(error) => Err(error.into()),
        };
        if let Err(failure) = read {
            return failure;
        }
    }
}

/// What to say of a message that belongs to nothing.
pub(crate) fn unexpected(message: &WatchResponse) -> String {
    let (created, cancelled) = (message.created(), message.canceled());
    format!(
        "a message on the stream of watches that belongs to none: id {}, created {created}, \
         cancelled {cancelled} {:?}, {} events",
        message.watch_id(),
        message.cancel_reason(),
        message.events().len(),
    )
}
