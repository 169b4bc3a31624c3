use etcd_client::{
    WatchResponse,
    proto::{PbEvent, PbKeyValue, PbResponseHeader, PbWatchResponse},
};
use lock_core::{Kind, LockName};

use super::*;
use crate::{layout::listing::Listed, queue::name::HELD};

fn entry(revision: i64, key: &str) -> QueueEntry {
    QueueEntry { revision, key: key.as_bytes().to_vec(), kind: Kind::Exclusive }
}

fn deletion(key: &str, at: i64) -> PbEvent {
    let kv = PbKeyValue { key: key.into(), mod_revision: at, ..Default::default() };
    PbEvent { r#type: 1, kv: Some(kv), ..Default::default() }
}

/// The first deletion that a watch reports may be that of the waiter for which it was opened.
#[test]
fn a_name_that_is_left_is_closed_in_time_also_if_its_watch_tells_something_after_that() {
    let mut names = Names::default();
    let (queue, key) = (Arc::<str>::from("job/"), "job/1f.0");
    let before = Before::all(vec![entry(4, "job/2f.0")]);
    let _told = names.enter(&queue, Uuid::new_v4(), entry(5, key), before, HELD);
    let id = names.watches.next_open().unwrap().id;
    let header = Some(PbResponseHeader { revision: 5, ..Default::default() });
    let message = PbWatchResponse { watch_id: id, header, ..Default::default() };
    let began = PbWatchResponse { created: true, ..message.clone() };
    names.message(&WatchResponse(began)).unwrap();
    names.leave(&queue, 5, key);
    let left = Clock::Boot.now();
    let deleted = PbWatchResponse { events: vec![deletion(key, 6)], ..message };
    names.message(&WatchResponse(deleted)).unwrap();
    assert_eq!(names.watches.next_close(), None);
    names.next_list(left + LINGER);
    assert_eq!(names.watches.next_close(), Some(id));
    assert!(names.watched.is_empty());
}

/// The list was sent before, and may fail for another reason.
#[test]
fn a_watch_that_is_refused_during_a_list_has_the_queue_listed_again() {
    let mut names = Names::default();
    let queue = Arc::<str>::from("job/");
    let before = Before::all(vec![entry(4, "job/2f.0")]);
    let _told = names.enter(&queue, Uuid::new_v4(), entry(5, "job/1f.0"), before, HELD);
    names.watches.next_open().unwrap();
    let now = Clock::Boot.now() + Duration::from_secs(1);
    assert!(names.next_list(now).0.is_some());
    let (watch_id, cancel_reason) = (-1, "permission denied".to_owned());
    let refused = PbWatchResponse { watch_id, created: true, canceled: true, ..Default::default() };
    names.message(&WatchResponse(PbWatchResponse { cancel_reason, ..refused })).unwrap();
    assert!(names.next_list(now).0.is_none(), "one is under way");
    names.not_listed(&queue);
    assert_eq!(names.next_list(now).0.unwrap(), std::slice::from_ref(&queue));
    assert!(names.take_refused(&queue).is_some());
}

/// Watches have lost events (etcd#18089).
#[test]
fn a_list_finds_a_loss_that_no_watch_reported() {
    let mut names = Names::default();
    let now = Clock::Boot.now();
    let (name, until) = (LockName::new("job").unwrap(), now + Duration::from_secs(3600));
    let validity = Validity::new(&name, until);
    names.watch_hold("job/1f.0".into(), 5, Some(5), validity.clone());
    assert!(names.next_list(now).0.is_none());
    for (at, entries) in [(1, vec![(5, "job/1f.0")]), (2, vec![])] {
        assert_eq!(validity.loss(), None);
        let (todo, _) = names.next_list(now + (HELD + Duration::from_secs(1)) * at);
        let queue = &todo.unwrap()[0];
        assert_eq!(&**queue, "job/");
        let entries = entries.iter().map(|(at, key)| entry(*at, key)).collect();
        names.listed(queue, &Listed::all(9, entries));
    }
    assert_eq!(validity.loss(), Some(LossReason::EntryGone));
}

/// Attempts use a key again as soon as it is free.
#[test]
fn a_hold_that_ends_young_is_not_watched_and_the_next_one_of_its_key_is() {
    let mut names = Names::default();
    let (queue, key) = (Arc::<str>::from("job/"), Arc::<str>::from("job/1f.0"));
    let until = Clock::Boot.now() + Duration::from_secs(3600);
    let validity = Validity::new(&LockName::new("job").unwrap(), until);
    let grown = |names: &mut Names| while names.grow_up(until) != Some(Instant::NEVER) {};
    names.add_young(&key, 5, Some(5), &validity);
    names.leave(&queue, 5, &key);
    grown(&mut names);
    assert!(names.watched.is_empty());
    names.add_young(&key, 6, Some(6), &validity);
    assert!(names.grow_up(Clock::Boot.now() - UNWATCHED).is_some_and(|next| next < until));
    names.release(&queue, 6, &key);
    names.add_young(&key, 7, Some(7), &validity);
    grown(&mut names);
    let queue = &mut names.watched.get_mut(&queue).unwrap().queue;
    assert!(queue.get_mut(6).is_none() && queue.get_mut(7).is_some());
}
