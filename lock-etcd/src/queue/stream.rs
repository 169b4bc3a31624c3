//! The stream of all watches of a client.

use std::{convert::Infallible, sync::Arc, time::Duration};

use etcd_client::{
    WatchFilterType, WatchOptions, WatchRequestSender, WatchResponseStream, WatchStream,
};
use lock_core::Clock;
use tokio::task::coop;

use crate::{
    error::{Failure, FailureKind},
    queue::watcher::Watcher,
    wire::{
        connection::{BACKOFF, Connection},
        reads,
        revisions::Mark,
        watches::Open,
    },
};

/// A stream that ends sooner than this is opened again after a longer pause each time.
const LASTED: Duration = Duration::from_secs(1);

/// Keeps the stream open while there is something to watch, until it is dropped.
pub(crate) async fn run(watcher: Arc<Watcher>) {
    let (connection, mut pause) = (&watcher.connection, BACKOFF);
    loop {
        let first = loop {
            if let Some(open) = watcher.names().next_open() {
                break open;
            }
            watcher.work.notified().await;
        };
        let mut changes = connection.changes();
        let (began, generation) = (Clock::Boot.now(), connection.member().generation);
        let seen = connection.revisions.mark();
        watcher.names().watches.generation = generation;
        let failure = match open(connection, first).await {
            Ok(opened) => {
                let (requests, messages) = opened.split();
                // Sending waits while etcd is slow to read. It must not keep us from reading: etcd
                // would stay slow for ever.
                tokio::select! {
                    // Messages are read before requests are sent.
                    biased;
                    failed = read(&watcher, messages, seen) => failed.err(),
                    failed = feed(&watcher, requests) => failed.err(),
                    // On another member from now on.
                    _ = changes.changed() => None,
                }
            }
            Err(failure) => Some(failure),
        };
        let lost = watcher.names().lost();
        for queue in &lost {
            watcher.names().resume(queue);
            // There may be 10,000.
            coop::consume_budget().await;
        }
        if Clock::Boot.now().since(began) > LASTED {
            pause = BACKOFF;
        }
        if let Some(failure) = failure {
            // If a login is refused, waiters and observers learn it from their next request.
            drop(connection.failed(generation, &failure).await);
            pause.wait().await;
        }
    }
}

async fn open(connection: &Connection, first: Open) -> Result<WatchStream, Failure> {
    let mut client = connection.member().client.watch_client();
    let opened = client.watch(first.target(), Some(options(&first)));
    let limit = connection.limits.request;
    match Box::pin(Clock::Boot.timeout(limit, opened)).await {
        Some(opened) => opened.map_err(Failure::of_stream),
        None => Err(Failure::silent(limit)),
    }
}

fn options(open: &Open) -> WatchOptions {
    let options = WatchOptions::new().with_watch_id(open.id).with_start_revision(open.start);
    let options = if open.key.is_none() { options.with_prefix() } else { options };
    match open.puts {
        true => options,
        false => options.with_filters([WatchFilterType::NoPut]),
    }
}

/// Sends requests until the stream fails.
async fn feed(watcher: &Watcher, mut requests: WatchRequestSender) -> Result<Infallible, Failure> {
    loop {
        let (open, close) = {
            let mut names = watcher.names();
            (names.next_open(), names.watches.next_close())
        };
        if open.is_none() && close.is_none() {
            watcher.work.notified().await;
        }
        if let Some(open) = open {
            requests.watch(open.target(), Some(options(&open))).await?;
        }
        if let Some(id) = close {
            requests.cancel(id).await?;
        }
    }
}

/// Reads messages until the stream fails. Before it was opened, the client had seen `mark`.
async fn read(
    watcher: &Watcher,
    mut messages: WatchResponseStream,
    mark: Mark,
) -> Result<Infallible, Failure> {
    let ended = || Failure::new(FailureKind::Broken, "the watch stream ended");
    loop {
        let message = messages.message().await?.ok_or_else(ended)?;
        if message.created() {
            reads::doubt(&watcher.connection, mark, message.header());
        }
        watcher.names().message(&message)?;
    }
}
