//! The one watch stream of a client.

use std::{sync::Arc, time::Duration};

use etcd_client::{
    WatchFilterType, WatchOptions, WatchRequestSender, WatchResponseStream, WatchStream,
};
use lock_core::Clock;
use tokio::time::timeout;

use crate::{
    connection::{ANSWER_LIMIT, Pause},
    error::{Failure, Kind},
    watch::Watcher,
    watches::Open,
};

/// A stream that ends sooner than this is opened again after a longer pause each time.
const LASTED: Duration = Duration::from_secs(1);

/// Keeps the stream open while there is something to watch, until it is aborted.
pub(crate) async fn run(watcher: Arc<Watcher>) {
    let mut pause = Pause::new();
    loop {
        let first = wait_for_first(&watcher).await;
        let connection = &watcher.connection;
        let mut changes = connection.changes();
        changes.mark_unchanged();
        let (began, generation) = (Clock::Boot.now(), connection.member().generation);
        watcher.names().stream_begins(generation);
        let failure = match open(&watcher, first).await {
            Ok(stream) => {
                let (requests, messages) = stream.split();
                // Sending waits when etcd is slow to take it, and must not keep us from reading:
                // etcd would be slow for ever.
                tokio::select! {
                    failure = feed(&watcher, requests) => Some(failure),
                    failure = read(&watcher, messages) => Some(failure),
                    // On another member from now on.
                    _ = changes.changed() => None,
                }
            }
            Err(failure) => Some(failure),
        };
        watcher.names().stream_lost();
        if Clock::Boot.now().since(began) > LASTED {
            pause = Pause::new();
        }
        if let Some(failure) = failure {
            if let Err(denied) = connection.failed(generation, &failure).await {
                watcher.names().login_refused(&denied);
            }
            pause.wait().await;
        }
    }
}

async fn wait_for_first(watcher: &Watcher) -> Open {
    loop {
        if let Some(open) = watcher.names().next_open() {
            return open;
        }
        watcher.stream_work.notified().await;
    }
}

async fn open(watcher: &Watcher, first: Open) -> Result<WatchStream, Failure> {
    let mut client = watcher.connection.member().watch.clone();
    let opened = client.watch(&*first.queue, Some(options(&first)));
    match timeout(ANSWER_LIMIT, opened).await {
        Ok(opened) => Ok(opened?),
        Err(_) => Err(Failure::silent(ANSWER_LIMIT)),
    }
}

/// Deletions of the name's keys and nothing else.
fn options(open: &Open) -> WatchOptions {
    WatchOptions::new()
        .with_prefix()
        .with_filters([WatchFilterType::NoPut])
        .with_watch_id(open.id)
        .with_start_revision(open.start)
}

async fn feed(watcher: &Watcher, mut requests: WatchRequestSender) -> Failure {
    loop {
        match feed_all(watcher, &mut requests).await {
            Ok(()) => watcher.stream_work.notified().await,
            Err(failure) => return failure,
        }
    }
}

async fn feed_all(watcher: &Watcher, requests: &mut WatchRequestSender) -> Result<(), Failure> {
    loop {
        let (open, close) = {
            let mut names = watcher.names();
            (names.next_open(), names.next_close())
        };
        if open.is_none() && close.is_none() {
            return Ok(());
        }
        if let Some(open) = open {
            requests.watch(&*open.queue, Some(options(&open))).await?;
        }
        if let Some(id) = close {
            requests.cancel(id).await?;
        }
    }
}

async fn read(watcher: &Watcher, mut messages: WatchResponseStream) -> Failure {
    loop {
        let read = match messages.message().await {
            Ok(Some(message)) => watcher.names().message(&message),
            Ok(None) => Err(Failure::new(Kind::Broken, "the watch stream ended")),
            Err(error) => Err(error.into()),
        };
        if let Err(failure) = read {
            return failure;
        }
    }
}
