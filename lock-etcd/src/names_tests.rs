use lock_core::LockName;

use super::*;
use crate::named::HELD;

/// Watches have lost events (etcd#18089).
#[test]
fn a_loss_of_which_no_watch_tells_is_found_out_by_a_list() {
    let mut names = Names::default();
    let now = Clock::Boot.now();
    let (name, until) = (LockName::new("job").unwrap(), now + Duration::from_secs(3600));
    let validity = Validity::new(&name, until);
    names.watch_hold("job/1f.0".into(), (5, 5), validity.clone());
    assert!(names.next_list(now).0.is_none());
    for (at, places) in [(1, vec![(5, "job/1f.0")]), (2, vec![])] {
        assert_eq!(validity.loss(), None);
        let (todo, _) = names.next_list(now + (HELD + Duration::from_secs(1)) * at);
        let queue = &todo.unwrap().queues[0];
        assert_eq!(&**queue, "job/");
        let place = |(revision, key): &(i64, &str)| Place {
            revision: *revision,
            key: key.as_bytes().to_vec(),
            kind: lock_core::Kind::Exclusive,
        };
        names.listed(queue, 9, &places.iter().map(place).collect::<Vec<_>>());
    }
    assert_eq!(validity.loss(), Some(LossReason::EntryGone));
}
