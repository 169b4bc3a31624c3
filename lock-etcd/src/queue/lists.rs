//! The names to list, when to list them, and the task that does it. It lists the names whose watch
//! cannot be relied on, and lists names now and then while an attempt waits.
//!
//! The state is in [`Names`], under a mutex that is held only for one change. Attempts call it
//! directly: a lock is passed on within this process without a switch of tasks.

use std::sync::Arc;

use futures_util::{StreamExt, stream::FuturesUnordered};
use lock_core::{Clock, Instant, deadline::jitter};
use tokio::task::coop;

use crate::{
    layout::listing::Listed,
    queue::{
        name::{LINGER, STEPS},
        watcher::{Names, Watcher},
    },
    wire::{
        connection::LONGEST_PAUSE,
        login::Login,
        reads::{self, Wanted},
    },
};

/// How many names are listed in one request; etcd allows 128 operations in a transaction.
const NAMES_PER_LIST: usize = 64;

/// How many lists may be under way: enough to hide the latency of etcd, not enough to overload it.
const LISTS_AT_ONCE: usize = 4;

/// Lists names until it is dropped.
pub(crate) async fn run(watcher: Arc<Watcher>) {
    let watcher = &*watcher;
    let work = watcher.names().work.clone();
    let mut lists = FuturesUnordered::new();
    loop {
        // The mutex and the runtime are free in between: many young holds may last.
        let mut wake = loop {
            if let Some(next) = watcher.names().grow_up(Clock::Boot.now()) {
                break next;
            }
            coop::consume_budget().await;
        };
        let now = Clock::Boot.now();
        while lists.len() < LISTS_AT_ONCE {
            let (todo, next) = watcher.names().next_list(now);
            let Some(todo) = todo else {
                wake = wake.min(next);
                break;
            };
            lists.push(list(watcher, todo));
        }
        tokio::select! {
            Some(()) = lists.next() => {}
            () = work.notified() => {}
            // On tokio's clock: this comes very often in a burst, and no TTL depends on it.
            () = tokio::time::sleep(wake.since(now)), if wake != Instant::NEVER => {}
        }
    }
}

async fn list(watcher: &Watcher, queues: Vec<Arc<str>>) {
    let connection = &watcher.connection;
    let wanted = watcher.names().wanted(queues);
    let lists = reads::list(connection, &wanted).await;
    let mut failed = Vec::new();
    for (Wanted { queue, .. }, mut list) in wanted.iter().zip(lists) {
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
            Ok(list) => names.listed(queue, &list),
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

impl Names {
    /// Returns how much of each queue to list. A name without attempts needs no list, unless its
    /// watch was refused.
    pub(super) fn wanted(&mut self, queues: Vec<Arc<str>>) -> Vec<Wanted> {
        let wanted = |queue: Arc<str>| {
            let watched = self.watched.get_mut(&queue)?;
            if watched.queue.is_idle() && watched.refused.is_none() {
                watched.listing = false;
                return None;
            }
            let (view, up_to) = (&watched.queue, watched.queue.up_to());
            let bell = watched.bell.as_ref();
            let bell = bell.and_then(|bell| Some((bell.key.clone(), view.revision(&bell.key)?)));
            let own = up_to.iter().flat_map(|_| view.own());
            let own = own.map(|(key, at)| (key.to_vec(), at)).collect();
            Some(Wanted { up_to, bell, own, queue })
        };
        queues.into_iter().filter_map(wanted).collect()
    }

    /// Returns the names to list now, and when to come again.
    pub(crate) fn next_list(&mut self, now: Instant) -> (Option<Vec<Arc<str>>>, Instant) {
        // Not all at once: after a reconnect, 10,000 names may be due.
        let due = self.due.iter().take_while(|(at, _)| *at <= now).take(NAMES_PER_LIST);
        for due in due.cloned().collect::<Vec<_>>() {
            self.due.remove(&due);
            self.fall_due(&due.1, now);
        }
        let wake = self.due.first().map_or(Instant::NEVER, |(at, _)| *at);
        if self.to_list.is_empty() {
            return (None, wake);
        }
        let rest = self.to_list.len().saturating_sub(NAMES_PER_LIST);
        let queues = self.to_list.split_off(rest);
        (Some(queues), if rest > 0 { now } else { wake })
    }

    fn fall_due(&mut self, queue: &Arc<str>, now: Instant) {
        let Some(watched) = self.watched.get_mut(queue) else { return };
        watched.due = None;
        if watched.is_over() {
            return self.close(queue);
        }
        if watched.is_unwatched() {
            // It was refused. Its waiters learn from the list that follows when it begins.
            let due = now + watched.poll.unwrap_or(LINGER);
            self.watch(queue, 0);
            return self.set_due(queue, Some(due));
        }
        watched.step = (watched.step + 1).min(STEPS.len());
        let next = watched.next_poll(now);
        self.want_list(queue);
        self.set_due(queue, Some(next));
    }

    /// Takes a list of a name's queue.
    pub(crate) fn listed(&mut self, queue: &Arc<str>, list: &Listed) {
        let Some(watched) = self.watched.get_mut(queue) else { return };
        watched.listing = false;
        watched.queue.listed(list);
        self.follow_list(queue, list.revision);
        self.judge(queue, Some(list.revision));
    }

    /// Notes that a list failed. It is tried again later.
    pub(crate) fn not_listed(&mut self, queue: &Arc<str>) {
        let Some(watched) = self.watched.get_mut(queue) else { return };
        watched.listing = false;
        self.look_for_bell(queue);
        self.judge(queue, None);
    }
}
