//! The watches on the stream of a client: their names, and which of them etcd has not begun yet.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use etcd_client::WatchResponse;
use tokio::sync::Notify;

/// A watch to be opened.
pub(crate) struct Open {
    pub(crate) id: i64,
    pub(crate) queue: Arc<str>,
    /// The one key to watch; `None` for all keys of the queue.
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) start: i64,
    /// Whether it reports what is written, too, and not deletions alone.
    pub(crate) puts: bool,
}

impl Open {
    /// The key, or the start of the keys, to watch.
    pub(crate) fn target(&self) -> &[u8] {
        self.key.as_deref().unwrap_or(self.queue.as_bytes())
    }
}

/// All watches on one stream.
#[derive(Default)]
pub(crate) struct Watches {
    queues: HashMap<i64, Arc<str>>,
    /// Requested, in order, and not answered. etcd handles the requests of a stream one after the
    /// other and answers in that order; a refusal carries no id.
    begun: VecDeque<i64>,
    last: i64,
    to_open: Vec<Open>,
    to_close: Vec<i64>,
    /// The generation of the connection on which the stream stands.
    pub(crate) generation: u64,
    /// Notified when there is something to open or to close.
    pub(crate) work: Arc<Notify>,
}

impl Watches {
    /// Adds a watch of a queue and returns its id.
    pub(crate) fn open(&mut self, queue: &Arc<str>, start: i64, puts: bool) -> i64 {
        self.add(Open { id: self.last + 1, queue: queue.clone(), key: None, start, puts })
    }

    /// Adds a watch of the deletions of one key of a queue, and returns its id.
    pub(crate) fn open_key(&mut self, queue: &Arc<str>, key: &[u8], start: i64) -> i64 {
        let (id, key) = (self.last + 1, Some(key.to_vec()));
        self.add(Open { id, queue: queue.clone(), key, start, puts: false })
    }

    fn add(&mut self, open: Open) -> i64 {
        self.last = open.id;
        self.queues.insert(open.id, open.queue.clone());
        self.to_open.push(open);
        self.work.notify_one();
        self.last
    }

    /// Closes a watch that etcd has begun, or is about to.
    pub(crate) fn close(&mut self, id: i64) {
        if self.queues.remove(&id).is_none() {
            return;
        }
        // It is mostly the next one, so the search begins there.
        match self.to_open.iter().rposition(|open| open.id == id) {
            Some(unsent) => drop(self.to_open.remove(unsent)),
            None => {
                self.to_close.push(id);
                self.work.notify_one();
            }
        }
    }

    /// Notes that etcd has ended a watch.
    pub(crate) fn ended(&mut self, id: i64) {
        self.queues.remove(&id);
    }

    /// Returns the name of a watch that is wanted.
    pub(crate) fn queue(&self, id: i64) -> Option<Arc<str>> {
        self.queues.get(&id).cloned()
    }

    /// Returns the watch that a message is about, unless we have closed it.
    pub(crate) fn about(&mut self, message: &WatchResponse) -> Option<i64> {
        let id = match message.created() {
            true => self.created(message.watch_id()),
            false => Some(message.watch_id()),
        };
        id.filter(|id| self.queues.contains_key(id))
    }

    /// Finds the create request that a reply answers.
    fn created(&mut self, id: i64) -> Option<i64> {
        let at = match id {
            -1 => 0,
            id => self.begun.iter().position(|begun| *begun == id)?,
        };
        self.begun.remove(at)
    }

    /// Forgets all watches: the stream is gone.
    pub(crate) fn clear(&mut self) {
        let (last, generation, work) = (self.last, self.generation, self.work.clone());
        *self = Self { last, generation, work, ..Self::default() };
    }

    /// Returns the next watch to request.
    pub(crate) fn next(&self) -> Option<&Open> {
        self.to_open.last()
    }

    /// Takes the next watch to request.
    pub(crate) fn next_open(&mut self) -> Option<Open> {
        let open = self.to_open.pop()?;
        self.begun.push_back(open.id);
        Some(open)
    }

    /// Takes the next watch to cancel.
    pub(crate) fn next_close(&mut self) -> Option<i64> {
        self.to_close.pop()
    }
}

#[cfg(test)]
mod tests {
    use etcd_client::proto::PbWatchResponse;

    use super::*;

    fn message(watch_id: i64, created: bool, canceled: bool) -> WatchResponse {
        WatchResponse(PbWatchResponse { watch_id, created, canceled, ..Default::default() })
    }

    fn opened(names: &[&str]) -> (Watches, Vec<i64>) {
        let mut watches = Watches::default();
        let open = |name: &&str| {
            watches.open(&Arc::from(*name), 0, false);
            watches.next_open().map(|open| open.id)
        };
        let ids = names.iter().filter_map(open).collect();
        (watches, ids)
    }

    #[test]
    fn a_refusal_is_that_of_the_oldest_request_without_an_answer() {
        let (mut watches, ids) = opened(&["a", "b", "c"]);
        assert_eq!(watches.about(&message(ids[0], true, false)), Some(ids[0]));
        assert_eq!(watches.about(&message(-1, true, true)), Some(ids[1]));
        assert_eq!(watches.about(&message(ids[2], true, false)), Some(ids[2]));
        assert_eq!(watches.about(&message(-1, true, true)), None);
    }

    #[test]
    fn a_closed_watch_concerns_no_name() {
        let (mut watches, ids) = opened(&["a", "b"]);
        watches.close(ids[0]);
        assert_eq!(watches.next_close(), Some(ids[0]));
        assert_eq!(watches.about(&message(ids[0], true, false)), None);
        assert_eq!(watches.about(&message(ids[0], false, false)), None);
        assert_eq!(watches.about(&message(ids[0], false, true)), None);
        assert_eq!(watches.about(&message(ids[1], true, false)), Some(ids[1]));
    }

    #[test]
    fn a_refused_request_that_was_closed_meanwhile_concerns_no_name() {
        let (mut watches, ids) = opened(&["a", "b"]);
        watches.close(ids[0]);
        assert_eq!(watches.about(&message(-1, true, true)), None);
        assert_eq!(watches.about(&message(ids[1], true, false)), Some(ids[1]));
    }

    #[test]
    fn an_unsent_watch_is_not_cancelled() {
        let mut watches = Watches::default();
        let id = watches.open(&Arc::from("a"), 0, false);
        watches.close(id);
        assert!(watches.next_open().is_none() && watches.next_close().is_none());
    }

    #[test]
    fn a_new_stream_uses_no_id_twice() {
        let (mut watches, ids) = opened(&["a"]);
        watches.clear();
        assert_eq!(watches.about(&message(ids[0], false, false)), None);
        assert!(watches.open(&Arc::from("a"), 0, false) > ids[0]);
    }
}
