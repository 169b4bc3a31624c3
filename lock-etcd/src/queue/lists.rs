//! The names to list, when to list them, and the results.

use std::sync::Arc;

use lock_core::Instant;

use crate::{
    layout::listing::QueueEntry,
    queue::{
        watched::{LINGER, STEPS},
        watcher::Names,
    },
};

/// How many names are listed in one request; etcd allows 128 operations in a transaction.
const LIST_AT_ONCE: usize = 64;

impl Names {
    /// Returns the names to list now, and when to come again.
    pub(crate) fn next_list(&mut self, now: Instant) -> (Option<Vec<Arc<str>>>, Instant) {
        let due: Vec<_> = self.due.iter().take_while(|(at, _)| *at <= now).cloned().collect();
        for due in due {
            self.due.remove(&due);
            self.fall_due(&due.1, now);
        }
        let wake = self.due.first().map_or(Instant::NEVER, |(at, _)| *at);
        if self.to_list.is_empty() {
            return (None, wake);
        }
        let rest = self.to_list.len().saturating_sub(LIST_AT_ONCE);
        let queues = self.to_list.split_off(rest);
        (Some(queues), if rest > 0 { now } else { wake })
    }

    fn fall_due(&mut self, queue: &Arc<str>, now: Instant) {
        let Some(watched) = self.watched.get_mut(queue) else { return };
        watched.due = None;
        if watched.is_over() {
            return self.close(queue);
        }
        if watched.watch.is_none() {
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

    /// Takes a list of a name's queue at a revision.
    pub(crate) fn listed(&mut self, queue: &Arc<str>, at: i64, entries: &[QueueEntry]) {
        let Some(watched) = self.watched.get_mut(queue) else { return };
        watched.listing = false;
        watched.queue.listed(at, entries);
        self.judge(queue, Some(at));
    }

    /// Notes that a list failed. It is tried again later.
    pub(crate) fn not_listed(&mut self, queue: &Arc<str>) {
        let Some(watched) = self.watched.get_mut(queue) else { return };
        watched.listing = false;
        self.judge(queue, None);
    }
}
