//! Names in whose queues all attempts of ours are far behind.
//!
//! A release sends an event to each client that watches the queue, so a crowd must not watch it. A
//! name is *far* as long as the [view](crate::queue::view) knows of no attempt of ours what is
//! before it: the acquiring transaction has listed the last entries only. Then the client watches
//! one of these, the *bell*, some places before its first attempt. When that entry is deleted, the
//! client watches the queue. The list that follows the beginning of each watch goes back from its
//! attempt. If it reaches the head of the queue, the name is near. Otherwise the bell's client has
//! left the queue, and another bell is hung.
//!
//! Nothing that is heard of a far name admits an attempt: only the view does, of what it knows. So
//! whatever is missed here costs time alone. If the bell may have been deleted before its watch
//! began, a list shows it; the lists of [`FAR_STEPS`] find all else, as when a lease is revoked
//! while an attempt enters. If a watch is refused, cancelled, or compacted away, the client watches
//! the queue, which is listed then.
//!
//! Lists go up to our first attempt. A few others behind it have their own keys watched at once,
//! and read with each list: a key may be deleted while nothing watches it.

use std::{collections::HashMap, sync::Arc};

use etcd_client::{EventType, WatchResponse};

use crate::queue::{
    name::{Bell, FAR_STEPS, Watched},
    watcher::Names,
};

/// How many entries stand between the bell and our first attempt: a quarter of the listed ones.
/// The bell's watch has the time of as many hand-overs to begin, and the queue's watch and its list
/// have as many until our attempt is next. Each release causes as many events.
const AHEAD: usize = 4;

impl Names {
    /// Watches the queue of a name, from `start` on if it is not watched yet; of a far one, the
    /// bell.
    pub(super) fn follow(&mut self, queue: &Arc<str>, start: i64) {
        let Some(watched) = self.watched.get(queue) else { return };
        let hung = watched.bell.as_ref().map(|bell| bell.key.as_slice());
        match watched.queue.bell(AHEAD) {
            None if hung.is_some() => self.approach(queue),
            None => self.watch(queue, start),
            Some(bell) if hung == Some(bell) => {}
            Some(bell) => {
                let bell = bell.to_vec();
                self.hang(queue, bell);
            }
        }
    }

    fn hang(&mut self, queue: &Arc<str>, key: Vec<u8>) {
        self.unwatch(queue);
        let Some(watched) = self.watched.get_mut(queue) else { return };
        let watches = HashMap::from([(key.clone(), self.watches.open_key(queue, &key, 0))]);
        watched.bell = Some(Bell { key, began: 0, is_new: !watched.crowded, watches });
        (watched.crowded, watched.step) = (true, 0);
        self.plan(queue);
    }

    /// Watches the queue of a name that was far.
    fn approach(&mut self, queue: &Arc<str>) {
        self.watch(queue, 0);
        if let Some(watched) = self.watched.get_mut(queue) {
            // The list that follows the beginning of the watch is the first step.
            watched.step = 1;
            self.plan(queue);
        }
    }

    /// Handles a message of a watch of a far name: an entry of ours is gone, or the bell's.
    pub(super) fn heard(&mut self, queue: &Arc<str>, id: i64, message: &WatchResponse) {
        let Some(watched) = self.watched.get_mut(queue) else { return };
        let Watched { queue: view, bell: Some(bell), .. } = watched else { return };
        if message.created() && bell.watches.get(&bell.key) == Some(&id) {
            bell.began = message.header().map_or(0, |header| header.revision());
        }
        let deletions = message.events().iter().filter(|it| it.event_type() == EventType::Delete);
        let mut rings = false;
        for kv in deletions.filter_map(|deletion| deletion.kv()) {
            view.deleted(kv.key(), kv.mod_revision());
            rings |= kv.key() == bell.key;
        }
        if rings && !view.is_idle() {
            self.approach(queue);
        }
        self.look_for_bell(queue);
        self.judge(queue, None);
    }

    /// Has the queue listed if the bell may have been deleted before its watch began, and after the
    /// last list.
    pub(super) fn look_for_bell(&mut self, queue: &Arc<str>) {
        let Some(watched) = self.watched.get_mut(queue) else { return };
        let Watched { queue: view, bell: Some(bell), step, .. } = watched else { return };
        if view.may_ring_by(bell.began, bell.is_new.then_some(AHEAD)) {
            *step = 1;
            self.want_list(queue);
            self.plan(queue);
        }
    }

    /// Follows a name after a list at a revision.
    pub(super) fn follow_list(&mut self, queue: &Arc<str>, at: i64) {
        let Some(watched) = self.watched.get(queue) else { return };
        let is_older = watched.watch.is_some() && !watched.queue.covers(at);
        if watched.is_unwatched() || is_older {
            // Its watch was refused, and is tried again later; or its bell has rung since the list.
            return;
        }
        self.follow(queue, 0);
        self.follow_own(queue, at);
        self.look_for_bell(queue);
    }

    /// Watches our own keys in a far name after a revision. A single attempt has none until its
    /// second list: most waits are over by then.
    pub(super) fn follow_own(&mut self, queue: &Arc<str>, at: i64) {
        let Some(watched) = self.watched.get_mut(queue) else { return };
        let Watched { queue: view, bell: Some(bell), step, .. } = watched else { return };
        if *step < FAR_STEPS.len() && view.mine().nth(1).is_none() {
            return;
        }
        for (key, _) in view.own() {
            let open = || self.watches.open_key(queue, key, at + 1);
            bell.watches.entry(key.to_vec()).or_insert_with(open);
        }
    }
}
