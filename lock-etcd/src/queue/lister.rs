//! The task on the watch side of a client. It has one stream with one watch for each name that
//! needs one. It lists the names whose watch cannot be relied on, and lists names now and then
//! while an attempt waits.
//!
//! Its state is in [`Names`](super::watcher::Names), under a mutex that is held only for one change.
//! Attempts call it directly: a lock is passed on within this process without a switch of tasks.

use std::sync::Arc;

use futures_util::{StreamExt, stream::FuturesUnordered};
use lock_core::{Clock, Instant, deadline::jitter};

use crate::{
    queue::{stream, watcher::Watcher},
    wire::{connection::LONGEST_PAUSE, login::Login, reads},
};

/// How many lists may be under way: enough to hide the latency of etcd, not enough to overload it.
const AT_ONCE: usize = 4;

/// Watches and lists until it is dropped.
pub(crate) async fn run(watcher: Arc<Watcher>) {
    tokio::join!(stream::run(&watcher), look(&watcher));
}

async fn look(watcher: &Watcher) {
    let due = watcher.names().work.clone();
    let mut lists = FuturesUnordered::new();
    loop {
        let now = Clock::Boot.now();
        let mut wake = grow_up(watcher, now);
        while lists.len() < AT_ONCE {
            let (todo, next) = watcher.names().next_list(now);
            let Some(todo) = todo else {
                wake = wake.min(next);
                break;
            };
            lists.push(list(watcher, todo));
        }
        tokio::select! {
            Some(()) = lists.next() => {}
            () = due.notified() => {}
            // On tokio's clock: this comes very often in a burst, and no TTL depends on it.
            () = tokio::time::sleep(wake.since(now)), if wake != Instant::NEVER => {}
        }
    }
}

/// Watches the young holds that last. Returns when to come again.
fn grow_up(watcher: &Watcher, now: Instant) -> Instant {
    loop {
        // The mutex is free in between: there may be many.
        let next = watcher.names().grow_up(now);
        if let Some(next) = next {
            return next;
        }
    }
}

async fn list(watcher: &Watcher, queues: Vec<Arc<str>>) {
    let connection = &watcher.connection;
    let lists = reads::list(connection, &queues).await;
    let mut failed = Vec::new();
    for (queue, mut list) in queues.iter().zip(lists) {
        let refused = watcher.names().take_refused(queue);
        if let (Some(generation), Ok(_)) = (refused, &list) {
            // The read has renewed a login that has expired, but not that of the stream.
            list = connection.log_in_to_watch(generation).await.and(list);
        }
        let mut names = watcher.names();
        if refused.is_some() {
            let may_be_another = connection.source.login().is_some_and(Login::can_change);
            names.watch_again(queue, list.as_ref().err(), may_be_another);
        }
        match list {
            Ok(list) => names.listed(queue, list.revision, &list.entries),
            Err(_) => failed.push(queue),
        }
    }
    if failed.is_empty() {
        return;
    }
    // The longest pause at once: the watch is the fast way, and it is repaired elsewhere.
    Clock::Boot.sleep(jitter(LONGEST_PAUSE)).await;
    let mut names = watcher.names();
    for queue in failed {
        names.not_listed(queue);
    }
}
