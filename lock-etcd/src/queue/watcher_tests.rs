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

/// An operator deletes a whole queue in one transaction: one message tells of more entries than a
/// name without attempts may hear of.
#[test]
fn a_message_that_ends_our_entry_and_many_others_is_told_before_its_name_is_closed() {
    let name = LockName::new("job").unwrap();
    let validity = Validity::new(&name, Clock::Boot.now() + Duration::from_secs(3600));
    let (queue, key) = (Arc::<str>::from("job/"), "job/1f.0");
    for holds in [true, false] {
        let mut names = Names::default();
        let told = match holds {
            true => {
                names.watch_hold(key.into(), 5, Some(5), validity.clone());
                None
            }
            false => {
                let before = Before::all(vec![entry(4, "job/2f.4")]);
                Some(names.enter(&queue, Uuid::new_v4(), entry(5, key), before, HELD))
            }
        };
        let id = names.watches.next_open().unwrap().id;
        tell(&mut names, id, 5, None);
        let others = (6..22).map(|at| format!("job/2f.{at}"));
        let events = [key.to_owned()].into_iter().chain(others).map(|key| deletion(&key, 30));
        let header = Some(PbResponseHeader { revision: 30, ..Default::default() });
        let (watch_id, events) = (id, events.collect());
        let message = PbWatchResponse { watch_id, header, events, ..Default::default() };
        names.message(&WatchResponse(message)).unwrap();
        assert!(names.watched.is_empty());
        match told {
            Some(mut told) => assert!(matches!(told.try_recv(), Ok(WaitEnd::Gone))),
            None => assert_eq!(validity.loss(), Some(LossReason::EntryGone)),
        }
    }
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

/// Enters behind eight entries and others before these.
fn enter_far(names: &mut Names, queue: &Arc<str>) -> oneshot::Receiver<WaitEnd> {
    let before = Before { more: true, ..Before::all(waiters([11, 12, 13, 14, 15, 16, 17, 18])) };
    names.enter(queue, Uuid::new_v4(), entry(20, OWN), before, HELD)
}

/// Enters behind the attempt of [`enter_far`].
fn enter_second(names: &mut Names, queue: &Arc<str>) -> oneshot::Receiver<WaitEnd> {
    let others = vec![entry(20, OWN), entry(21, "job/2f.21")];
    let entries = [waiters([13, 14, 15, 16, 17, 18]), others].concat();
    let before = Before { more: true, ..Before::all(entries) };
    names.enter(queue, Uuid::new_v4(), entry(22, SECOND), before, HELD)
}

const OWN: &str = "job/1f.0";
const SECOND: &str = "job/1f.1";

/// The keys and create revisions of both.
fn both() -> Vec<(Vec<u8>, i64)> {
    vec![(OWN.into(), 20), (SECOND.into(), 22)]
}

fn waiters<const N: usize>(revisions: [i64; N]) -> Vec<QueueEntry> {
    revisions.map(|at| entry(at, &format!("job/2f.{at}"))).to_vec()
}

/// A list of the last entries up to the one of ours; there are more before them.
fn last<const N: usize>(at: i64, revisions: [i64; N]) -> Listed {
    let entries = [waiters(revisions), vec![entry(20, OWN)]].concat();
    Listed { range: entries[0].revision + 1..=20, ..Listed::all(at, entries) }
}

/// Tells that a watch has begun, or that a key was deleted.
fn tell(names: &mut Names, watch_id: i64, at: i64, deleted: Option<&str>) {
    let header = Some(PbResponseHeader { revision: at, ..Default::default() });
    let (created, events) = (deleted.is_none(), deleted.map(|key| deletion(key, at)));
    let events = events.into_iter().collect();
    let message = PbWatchResponse { watch_id, header, created, events, ..Default::default() };
    names.message(&WatchResponse(message)).unwrap();
}

/// A client hears of releases only when its turn comes near.
#[test]
fn a_far_name_is_watched_when_its_bell_is_gone() {
    let (mut names, now) = (Names::default(), Clock::Boot.now());
    let queue = Arc::<str>::from("job/");
    let mut told = enter_far(&mut names, &queue);
    let bell = names.next_open().unwrap();
    assert_eq!(bell.target(), b"job/2f.14");
    tell(&mut names, bell.id, 20, None);
    assert!(names.next_open().is_none() && names.next_list(now).0.is_none());
    tell(&mut names, bell.id, 21, Some("job/2f.14"));
    let watch = names.next_open().unwrap();
    assert_eq!((watch.target(), names.watches.next_close()), (&b"job/"[..], Some(bell.id)));
    tell(&mut names, watch.id, 22, None);
    assert!(names.next_list(now).0.is_some());
    // The bell's client had left: others are still before the last ones.
    names.listed(&queue, &last(23, [9, 12, 13, 15, 16, 17, 18]));
    let bell = names.next_open().unwrap();
    assert_eq!((bell.target(), names.watches.next_close()), (&b"job/2f.13"[..], Some(watch.id)));
    tell(&mut names, bell.id, 24, Some("job/2f.13"));
    let watch = names.next_open().unwrap();
    tell(&mut names, watch.id, 25, None);
    assert!(names.next_list(now).0.is_some());
    names.listed(&queue, &Listed::all(25, [waiters([18]), vec![entry(20, OWN)]].concat()));
    told.try_recv().unwrap_err();
    tell(&mut names, watch.id, 26, Some("job/2f.18"));
    assert_eq!(told.try_recv(), Ok(WaitEnd::Yours));
    names.release(&queue, 20, OWN);
    assert_eq!(names.watches.next_close(), Some(watch.id), "the next attempt is far, too");
}

#[test]
fn a_far_waiter_is_told_that_its_entry_is_gone() {
    let (mut names, now) = (Names::default(), Clock::Boot.now());
    let queue = Arc::<str>::from("job/");
    let mut told = enter_far(&mut names, &queue);
    let bell = names.next_open().unwrap();
    for (at, minutes) in [(21, 1), (22, 2)] {
        assert!(names.next_open().is_none(), "most waits are over by then");
        assert!(names.next_list(now + Duration::from_secs(60 * minutes)).0.is_some());
        names.listed(&queue, &last(at, [11, 12, 13, 14, 15, 16, 17, 18]));
    }
    let own = names.next_open().unwrap();
    assert_eq!((own.target(), own.start), (OWN.as_bytes(), 23));
    tell(&mut names, own.id, 24, Some(OWN));
    assert_eq!(told.try_recv(), Ok(WaitEnd::Gone));
    assert_ne!(own.id, bell.id);
}

/// Lists do not go up to the second one.
#[test]
fn a_client_with_two_attempts_stays_far_and_is_told_that_the_second_is_gone() {
    let (mut names, now) = (Names::default(), Clock::Boot.now());
    let queue = Arc::<str>::from("job/");
    let _first = enter_far(&mut names, &queue);
    let bell = names.next_open().unwrap();
    let mut second = enter_second(&mut names, &queue);
    let opened: Vec<_> = std::iter::from_fn(|| names.next_open()).collect();
    let own = opened.iter().find(|open| open.target() == SECOND.as_bytes()).unwrap();
    assert_eq!((own.start, names.watches.next_close()), (23, None));
    tell(&mut names, bell.id, 20, None);
    assert!(names.next_list(now + Duration::from_secs(3)).0.is_some());
    let wanted = names.wanted(vec![queue.clone(), "idle/".into()]);
    assert_eq!((wanted.len(), wanted[0].up_to, &wanted[0].own), (1, Some(20), &both()));
    assert_eq!(wanted[0].bell, Some((b"job/2f.14".to_vec(), 14)));
    names.listed(&queue, &last(23, [11, 12, 13, 14, 15, 16, 17, 18]));
    assert!(names.next_open().is_none() && names.watches.next_close().is_none());
    tell(&mut names, own.id, 24, Some(SECOND));
    assert_eq!(second.try_recv(), Ok(WaitEnd::Gone));
}

/// Its key is deleted after its own watch is closed, and before that of the queue begins.
#[test]
fn a_second_attempt_learns_from_a_list_up_to_the_first_that_it_is_gone() {
    let (mut names, now) = (Names::default(), Clock::Boot.now());
    let queue = Arc::<str>::from("job/");
    let mut first = enter_far(&mut names, &queue);
    let bell = names.next_open().unwrap();
    let mut second = enter_second(&mut names, &queue);
    std::iter::from_fn(|| names.next_open()).for_each(drop);
    tell(&mut names, bell.id, 20, None);
    tell(&mut names, bell.id, 23, Some("job/2f.14"));
    let watch = names.next_open().unwrap();
    assert_eq!(watch.target(), b"job/");
    tell(&mut names, watch.id, 25, None);
    assert!(names.next_list(now).0.is_some());
    let wanted = names.wanted(vec![queue.clone()]);
    assert_eq!((wanted[0].up_to, &wanted[0].bell, &wanted[0].own), (Some(20), &None, &both()));
    let list = last(25, [9, 12, 13, 15, 16, 17, 18]);
    names.listed(&queue, &Listed { gone: vec![22], ..list });
    assert_eq!(second.try_recv(), Ok(WaitEnd::Gone));
    assert_eq!(names.next_open().unwrap().target(), b"job/2f.13", "the first one is far again");
    first.try_recv().unwrap_err();
}

/// The list that follows the beginning of this watch decides whether the name is far again.
#[test]
fn a_new_attempt_leaves_the_watch_of_a_queue_that_comes_near() {
    let mut names = Names::default();
    let queue = Arc::<str>::from("job/");
    let _first = enter_far(&mut names, &queue);
    let bell = names.next_open().unwrap();
    tell(&mut names, bell.id, 20, None);
    tell(&mut names, bell.id, 23, Some("job/2f.14"));
    assert_eq!(names.next_open().unwrap().target(), b"job/");
    assert_eq!(names.watches.next_close(), Some(bell.id));
    let _second = enter_second(&mut names, &queue);
    assert!(names.next_open().is_none() && names.watches.next_close().is_none());
}

/// The list shows the bell as it was.
#[test]
fn a_list_from_before_the_bell_was_deleted_does_not_bring_it_back() {
    let (mut names, now) = (Names::default(), Clock::Boot.now());
    let queue = Arc::<str>::from("job/");
    let _told = enter_far(&mut names, &queue);
    let bell = names.next_open().unwrap();
    tell(&mut names, bell.id, 20, None);
    assert!(names.next_list(now + Duration::from_secs(3)).0.is_some());
    tell(&mut names, bell.id, 21, Some("job/2f.14"));
    names.listed(&queue, &last(20, [11, 12, 13, 14, 15, 16, 17, 18]));
    let watch = names.next_open().unwrap();
    assert_eq!(watch.target(), b"job/", "it is near");
    assert!(names.next_open().is_none());
    tell(&mut names, watch.id, 22, None);
    assert!(names.next_list(now).0.is_some());
    names.listed(&queue, &last(22, [11, 12, 13, 15, 16, 17, 18]));
    assert_eq!(names.next_open().unwrap().target(), b"job/2f.13");
}

/// As many revisions have passed as entries stood up to the bell.
#[test]
fn a_bell_that_may_be_gone_before_its_watch_begins_is_looked_for() {
    let mut names = Names::default();
    let now = Clock::Boot.now();
    for (queue, passed, is_listed) in [("job/", 3, false), ("other/", 4, true)] {
        let queue = Arc::<str>::from(queue);
        let _told = enter_far(&mut names, &queue);
        let bell = names.next_open().unwrap();
        tell(&mut names, bell.id, 20 + passed, None);
        assert_eq!(names.next_list(now).0.is_some(), is_listed);
    }
}

/// It was under way when the stream was lost.
#[test]
fn a_list_from_before_the_bells_watch_does_not_show_that_the_bell_stands() {
    let (mut names, now) = (Names::default(), Clock::Boot.now());
    let queue = Arc::<str>::from("job/");
    let _told = enter_far(&mut names, &queue);
    names.next_open().unwrap();
    assert!(names.next_list(now + Duration::from_secs(3)).0.is_some());
    names.lost().iter().for_each(|queue| names.resume(queue));
    let bell = names.next_open().unwrap();
    // A revoked lease takes many entries in one revision.
    tell(&mut names, bell.id, 21, None);
    for (at, is_listed) in [(20, true), (21, false)] {
        assert!(names.next_list(now).0.is_none(), "one is under way");
        names.listed(&queue, &last(at, [11, 12, 13, 14, 15, 16, 17, 18]));
        assert_eq!(names.next_list(now).0.is_some(), is_listed);
    }
}

/// Its bell may have been deleted meanwhile: the next list shows that.
#[test]
fn a_far_name_stays_far_when_the_stream_is_lost() {
    let mut names = Names::default();
    let queue = Arc::<str>::from("job/");
    let _told = enter_far(&mut names, &queue);
    let bell = names.next_open().unwrap();
    names.lost().iter().for_each(|queue| names.resume(queue));
    let again = names.next_open().unwrap();
    assert_eq!(again.target(), bell.target());
    assert!(again.id > bell.id && names.next_open().is_none());
    assert!(names.next_list(Clock::Boot.now() + Duration::from_secs(3)).0.is_some());
    names.listed(&queue, &last(30, [7, 8, 9]));
    assert_eq!(names.next_open().unwrap().target(), b"job/2f.7");
}

/// No step takes long, however many names there are.
#[test]
fn a_crowd_of_names_is_listed_in_parts_after_a_loss() {
    let mut names = Names::default();
    let mut told = Vec::new();
    for number in 0..200 {
        let key = |lease: &str| format!("{number}/{lease}.0");
        let before = Before::all(vec![entry(4, &key("2f"))]);
        let queue = format!("{number}/").into();
        told.push(names.enter(&queue, Uuid::new_v4(), entry(5, &key("1f")), before, HELD));
    }
    let lost = names.lost();
    assert!(names.watched.values().all(|watched| watched.watch.is_none()));
    lost.iter().for_each(|queue| names.resume(queue));
    assert!(names.watched.values().all(|watched| watched.watch.is_some()));
    let now = Clock::Boot.now() + Duration::from_secs(1);
    let mut parts = Vec::new();
    while let (Some(part), _) = names.next_list(now) {
        parts.push((part.len(), names.due.iter().filter(|(at, _)| *at <= now).count()));
    }
    assert_eq!(parts, [(64, 136), (64, 72), (64, 8), (8, 0)]);
}
