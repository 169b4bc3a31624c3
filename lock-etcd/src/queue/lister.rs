//! Lists queues when their watch cannot be relied on, and now and then while somebody waits.

use std::sync::Arc;

use futures_util::{StreamExt, stream::FuturesUnordered};
use lock_core::{Clock, Instant};
use tokio::time::sleep;

use crate::{
    error::FailureKind,
    queue::{lists::ToList, names::Doubt, watcher::Watcher},
    wire::{backoff::Pause, reads},
};

/// How many lists may be under way: enough to hide the way to etcd, not enough to drown it.
const AT_ONCE: usize = 4;

/// What is under way.
enum Work {
    List(ToList),
    /// Whether the login may read what it was refused to watch.
    Ask(Vec<Doubt>),
}

/// Lists what is to be listed until it is aborted.
pub(crate) async fn run(watcher: Arc<Watcher>) {
    let (mut works, mut asking) = (FuturesUnordered::new(), false);
    loop {
        let now = Clock::Boot.now();
        let mut wake = watcher.grow_up(now);
        if !asking {
            let doubted = watcher.names().take_doubted();
            asking = !doubted.is_empty();
            works.extend(asking.then(|| work(&watcher, Work::Ask(doubted))));
        }
        while works.len() < AT_ONCE {
            let (todo, next) = watcher.names().next_list(now);
            let Some(todo) = todo else {
                wake = wake.min(next);
                break;
            };
            works.push(work(&watcher, Work::List(todo)));
        }
        tokio::select! {
            Some(asked) = works.next() => asking &= !asked,
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

/// Answers whether it was a question.
async fn work(watcher: &Watcher, work: Work) -> bool {
    match work {
        Work::List(todo) => {
            list(watcher, todo).await;
            false
        }
        Work::Ask(doubted) => {
            ask(watcher, doubted).await;
            true
        }
    }
}

async fn list(watcher: &Watcher, todo: ToList) {
    let lists = reads::list(&watcher.connection, &todo.queues, todo.exact).await;
    let mut failed = Vec::new();
    for (queue, list) in todo.queues.iter().zip(lists) {
        match list {
            Ok(list) => watcher.names().listed(queue, list.revision, &list.entries),
            Err(_) => failed.push(queue),
        }
    }
    if failed.is_empty() {
        return;
    }
    // The longest pause at once: the watch is the fast way, and it is mended elsewhere.
    Pause::longest().wait().await;
    let mut names = watcher.names();
    for queue in failed {
        names.not_listed(queue);
    }
}

/// Some versions say "permission denied" for whatever ails a login, and a watch may be refused on a
/// login of before: a read has the last word. It renews a login that has expired, but not that of the
/// stream of watches.
async fn ask(watcher: &Watcher, doubted: Vec<Doubt>) {
    let mut refused: Option<String> = None;
    for Doubt { queue, reason, generation } in doubted {
        // A login that is refused is so for all names: it is tried once.
        if let Some(refused) = &refused {
            watcher.names().deny(&queue, refused);
            continue;
        }
        let may_read = match reads::check_right(&watcher.connection, &queue).await {
            Ok(()) => watcher.connection.log_in_to_watch(generation).await,
            failed => failed,
        };
        match may_read {
            Err(failure) if failure.is_login_refused() => {
                watcher.names().deny(&queue, &failure.to_string());
                refused = Some(failure.to_string());
            }
            Err(failure) if failure.kind == FailureKind::Denied => {
                watcher.names().deny(&queue, &reason)
            }
            _ => watcher.names().watch_again(&queue),
        }
    }
}
