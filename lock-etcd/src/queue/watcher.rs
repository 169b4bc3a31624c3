//! The task on the watch side of a client. It has one stream with one watch for each name that
//! needs one. It lists the names whose watch cannot be relied on, and lists names now and then
//! while an attempt waits.
//!
//! Its state is in [`Names`], under a mutex that is held only for one change. Attempts call it
//! directly: a lock is passed on within this process without a switch of tasks.

use std::sync::Arc;

use futures_util::{StreamExt, stream::FuturesUnordered};
use lock_core::{Clock, Instant, deadline::jitter};

use crate::{
    error::FailureKind,
    queue::{
        lists::ToList,
        names::{Doubt, Names},
    },
    wire::{
        connection::LONGEST_PAUSE,
        reads,
        stream::{self, Stream},
    },
};

/// How many lists may be under way: enough to hide the latency of etcd, not enough to overload it.
const AT_ONCE: usize = 4;

/// The state of the names that this client waits for or holds, and the stream that updates it.
pub(crate) type Watcher = Stream<Names>;

/// Watches and lists until it is aborted.
pub(crate) async fn run(watcher: Arc<Watcher>) {
    tokio::join!(stream::run(watcher.clone()), look(&watcher));
}

async fn look(watcher: &Watcher) {
    let due = watcher.side().work.clone();
    let (mut lists, mut asking) = (FuturesUnordered::new(), FuturesUnordered::new());
    loop {
        let now = Clock::Boot.now();
        let mut wake = grow_up(watcher, now);
        if asking.is_empty() {
            asking.extend(watcher.side().take_doubted().map(|doubted| ask(watcher, doubted)));
        }
        while lists.len() + asking.len() < AT_ONCE {
            let (todo, next) = watcher.side().next_list(now);
            let Some(todo) = todo else {
                wake = wake.min(next);
                break;
            };
            lists.push(list(watcher, todo));
        }
        tokio::select! {
            Some(()) = lists.next() => {}
            Some(()) = asking.next() => {}
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
        let next = watcher.side().grow_up(now);
        if let Some(next) = next {
            return next;
        }
    }
}

async fn list(watcher: &Watcher, todo: ToList) {
    let lists = reads::list(&watcher.connection, &todo.queues, todo.exact).await;
    let mut failed = Vec::new();
    for (queue, list) in todo.queues.iter().zip(lists) {
        match list {
            Ok(list) => watcher.side().listed(queue, list.revision, &list.entries),
            Err(_) => failed.push(queue),
        }
    }
    if failed.is_empty() {
        return;
    }
    // The longest pause at once: the watch is the fast way, and it is repaired elsewhere.
    Clock::Boot.sleep(jitter(LONGEST_PAUSE)).await;
    let mut names = watcher.side();
    for queue in failed {
        names.not_listed(queue);
    }
}

/// Checks by a read which of the refused watches the login may have. Some versions say "permission
/// denied" for any problem of a login, and a watch may be refused because of an earlier login, so a
/// read decides. The read renews a login that has expired, but not that of the stream of watches.
async fn ask(watcher: &Watcher, doubted: Vec<Doubt>) {
    let mut refused: Option<String> = None;
    for Doubt { queue, reason, generation } in doubted {
        // A refused login is refused for all names: it is tried once.
        if let Some(refused) = &refused {
            locked_out(watcher, &queue, refused);
            continue;
        }
        let may_read = match reads::check_right(&watcher.connection, &queue).await {
            Ok(()) => watcher.connection.log_in_to_watch(generation).await,
            failed => failed,
        };
        match may_read {
            Err(failure) if failure.is_login_refused() => {
                locked_out(watcher, &queue, &failure.to_string());
                refused = Some(failure.to_string());
            }
            Err(failure) if failure.kind == FailureKind::Denied => {
                watcher.side().deny(&queue, &reason)
            }
            _ => watcher.side().watch_again(&queue),
        }
    }
}

/// Handles a queue that cannot be watched because etcd refuses the login. If the login may be
/// replaced, etcd may know the next one already, and the waiters keep their places meanwhile.
fn locked_out(watcher: &Watcher, queue: &Arc<str>, reason: &str) {
    match watcher.connection.source.may_have_other_login() {
        true => watcher.side().watch_later(queue, reason),
        false => watcher.side().deny(queue, reason),
    }
}
