//! Lists queues when their watch cannot be relied on, and now and then while somebody waits.

use std::sync::Arc;

use futures_util::{StreamExt, stream::FuturesUnordered};
use lock_core::{Clock, Instant};
use tokio::time::sleep;

use crate::{connection::Pause, names::ToList, reads, watch::Watcher};

/// How many lists may be under way: enough to hide the way to etcd, not enough to drown it.
const AT_ONCE: usize = 4;

/// Lists what is to be listed until it is aborted.
pub(crate) async fn run(watcher: Arc<Watcher>) {
    let mut lists = FuturesUnordered::new();
    loop {
        let now = Clock::Boot.now();
        let mut wake = watcher.grow_up(now);
        while lists.len() < AT_ONCE {
            let (todo, next) = watcher.names().next_list(now);
            let Some(todo) = todo else {
                wake = wake.min(next);
                break;
            };
            lists.push(list(&watcher, todo));
        }
        tokio::select! {
            Some(()) = lists.next() => {}
            () = watcher.list_work.notified() => {}
            () = wait_until(wake, now) => {}
        }
    }
}

async fn wait_until(wake: Instant, now: Instant) {
    match wake {
        Instant::NEVER => std::future::pending().await,
        wake => sleep(wake.since(now)).await,
    }
}

async fn list(watcher: &Watcher, todo: ToList) {
    match reads::list(&watcher.connection, &todo.queues, todo.exact).await {
        Ok(lists) => {
            let mut names = watcher.names();
            for (queue, places) in todo.queues.iter().zip(&lists.queues) {
                names.listed(queue, lists.revision, places);
            }
        }
        Err(_) => {
            // The longest pause at once: the watch is the fast way, and it is mended elsewhere.
            Pause::longest().wait().await;
            let mut names = watcher.names();
            for queue in &todo.queues {
                names.not_listed(queue);
            }
        }
    }
}
