use uuid::Uuid;

use super::*;

fn children(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Returns a queue of such entries, first comer first.
fn queue(kinds: &[Kind]) -> Vec<String> {
    let name = |(i, kind): (usize, &Kind)| format!("{}{i:010}", child::stem(Uuid::new_v4(), *kind));
    kinds.iter().enumerate().map(name).collect()
}

/// Returns the view of the last entry of a queue.
fn last_of(queue: &[String]) -> Ahead {
    let own = queue.last().unwrap();
    let mut ahead = Ahead::new(child::kind(own));
    assert!(ahead.see(queue.to_vec(), own, child::sequence(own).unwrap()));
    ahead
}

const X: Kind = Kind::Exclusive;
const S: Kind = Kind::Shared;

fn permit(weight: u32) -> Kind {
    Kind::Permit { weight, limit: 3 }
}

/// Returns every queue of at most four entries.
fn all_queues() -> Vec<Vec<Kind>> {
    let (mut all, mut longest) = (Vec::new(), vec![Vec::new()]);
    for _ in 0..4 {
        let longer = longest.iter().flat_map(|queue: &Vec<Kind>| {
            [X, S, permit(1), permit(2), permit(3)].map(|kind| [&queue[..], &[kind]].concat())
        });
        longest = longer.collect();
        all.extend(longest.clone());
    }
    all
}

#[test]
fn places_are_by_number_and_not_by_name() {
    let list = children(&["z-lock-0000000001", "a-lock-0000000003", "m-lock-0000000002", "dir"]);
    let mut ahead = Ahead::new(X);
    assert!(ahead.see(list.clone(), "z-lock-0000000001", 1));
    assert_eq!((ahead.duty(), ahead.is_followed()), (Duty::Hold, true));
    assert!(ahead.see(list.clone(), "a-lock-0000000003", 3));
    assert_eq!((ahead.duty(), ahead.is_followed()), (Duty::After(1), false));
    assert_eq!(ahead.names(), ["z-lock-0000000001", "m-lock-0000000002"]);
    assert!(!ahead.see(list, "q-lock-0000000009", 9));
}

#[test]
fn the_counter_may_wrap() {
    let list = children(&["a-lock-2147483647", "b-lock--2147483648", "c-lock--2147483647"]);
    let mut ahead = Ahead::new(X);
    assert!(ahead.see(list.clone(), &list[2], -2147483647));
    assert_eq!(ahead.names(), &list[..2]);
    assert_eq!(in_order(children(&[&list[1], &list[2], "dir", &list[0]])), list);
    // Numbers that no server ever has in one directory have some order.
    let odd = ["a-lock-0000000000", "b-lock-1600000000", "c-lock--1600000000"];
    assert_eq!(in_order(children(&odd)).len(), 3);
}

#[test]
fn a_foreign_entry_with_my_number_is_before_me() {
    let mut ahead = Ahead::new(S);
    let list = children(&["a-lock-0000000001", "b-lock-0000000001"]);
    assert!(ahead.see(list, "a-lock-0000000001", 1));
    assert_eq!(ahead.duty(), Duty::After(0));
}

#[test]
fn only_entries_that_the_rule_admits_hold() {
    for kinds in all_queues() {
        let (mine, before) = kinds.split_last().unwrap();
        let holds = last_of(&queue(&kinds)).duty() == Duty::Hold;
        assert_eq!(holds, judge(before, *mine) == Verdict::Admitted, "{kinds:?}");
    }
}

#[test]
fn a_departure_wakes_each_entry_that_it_admits() {
    for kinds in all_queues() {
        let queue = queue(&kinds);
        let duty = last_of(&queue).duty();
        for gone in 0..queue.len() - 1 {
            let without = |end: usize| {
                let mut rest = queue[..end].to_vec();
                rest.remove(gone);
                last_of(&rest).duty()
            };
            let admitted = duty != Duty::Hold && without(queue.len()) == Duty::Hold;
            let woken = match duty {
                Duty::After(index) => gone == index,
                Duty::AfterAny => true,
                // By the entry before, which is admitted, too, and says so.
                Duty::AfterAdmission(index) => gone == index || without(index + 1) == Duty::Hold,
                Duty::Hold => false,
            };
            assert!(woken || !admitted, "{kinds:?} without {gone}: {duty:?}");
        }
    }
}

#[test]
fn no_entry_enters_before_the_followed_one_is_gone() {
    for kinds in all_queues() {
        let (mine, before) = kinds.split_last().unwrap();
        let Duty::After(followed) = last_of(&queue(&kinds)).duty() else { continue };
        for stay in 0..1 << before.len() {
            let stays = |i: &usize| stay & (1 << i) != 0;
            let rest: Vec<_> = (0..before.len()).filter(stays).map(|i| before[i]).collect();
            let admitted = judge(&rest, *mine) == Verdict::Admitted;
            assert!(!admitted || !stays(&followed), "{kinds:?} with {rest:?}");
        }
    }
}

/// Returns the duty of the last entry, before and after an entry has ended.
fn duties(kinds: &[Kind], index: usize, ending: News) -> (Duty, Duty) {
    let queue = queue(kinds);
    let mut ahead = last_of(&queue);
    let duty = ahead.duty();
    ahead.learn(&queue[index], ending);
    (duty, ahead.duty())
}

#[test]
fn a_release_in_this_process_tells_more_than_a_deletion() {
    use News::{Gone, Passed};
    let one = Kind::Permit { weight: 1, limit: 1 };
    for (kinds, passed, gone) in [
        (&[X, X, X][..], Duty::Hold, Duty::After(0)),
        (&[S, X, S], Duty::Hold, Duty::Hold),
        (&[X, S, X], Duty::After(0), Duty::After(0)),
        (&[permit(1), S, X], Duty::Hold, Duty::After(0)),
        (&[S, S, X], Duty::After(0), Duty::After(0)),
        (&[one, one, one], Duty::Hold, Duty::After(0)),
        (&[S, permit(1), permit(3)], Duty::Hold, Duty::After(0)),
        (&[permit(1), permit(1), permit(3)], Duty::After(0), Duty::After(0)),
    ] {
        assert_eq!(duties(kinds, 1, Passed), (Duty::After(1), passed), "{kinds:?}");
        assert_eq!(duties(kinds, 1, Gone), (Duty::After(1), gone), "{kinds:?}");
    }
}

/// The first one was exclusive and is downgraded; a reader behind it entered and leaves again.
#[test]
fn a_reader_that_left_does_not_hide_a_downgraded_writer() {
    let (_, then) = duties(&[X, S, X], 1, News::Passed);
    assert_eq!(then, Duty::After(0));
}

#[test]
fn a_view_of_one_entry_says_hold_if_that_one_passed_alone() {
    let queue = queue(&[X, X]);
    for (news, duty) in [(News::Passed, Duty::Hold), (News::Gone, Duty::After(0))] {
        let mut ahead = Ahead::new(X);
        ahead.see_only(&queue[0]);
        assert_eq!((ahead.duty(), ahead.place()), (Duty::After(1), None));
        assert_eq!(ahead.names()[1].as_str(), &*queue[0]);
        ahead.learn(&queue[0], news);
        assert_eq!((ahead.duty(), ahead.names().concat()), (duty, UNKNOWN.to_owned()));
        assert!(ahead.see(queue[1..].to_vec(), &queue[1], 1));
        assert_eq!((ahead.duty(), ahead.place()), (Duty::Hold, Some(0)));
    }
}

#[test]
fn a_change_of_an_entry_is_remembered() {
    let queue = queue(&[X, S, S]);
    let mut ahead = last_of(&queue);
    assert_eq!(ahead.duty(), Duty::After(0));
    ahead.learn(&queue[0], News::Became(Became::Shared));
    assert_eq!(ahead.duty(), Duty::Hold);
    assert!(ahead.see(queue.clone(), &queue[2], 2));
    assert_eq!(ahead.duty(), Duty::Hold);
}

#[test]
fn only_the_first_waiter_for_permits_follows_all_holders() {
    let queue = queue(&[permit(2), permit(1), permit(1), permit(1)]);
    assert_eq!(last_of(&queue[..3]).duty(), Duty::AfterAny);
    let mut ahead = last_of(&queue);
    assert_eq!(ahead.duty(), Duty::AfterAdmission(2));
    ahead.learn(&queue[2], News::Became(Became::Admitted));
    assert_eq!(ahead.duty(), Duty::AfterAny);
    // Also if the list is older than the news.
    assert!(ahead.see(queue.clone(), &queue[3], 3));
    assert_eq!(ahead.duty(), Duty::AfterAny);
    ahead.learn(&queue[0], News::Gone);
    assert_eq!(ahead.duty(), Duty::Hold);
}

#[test]
fn the_first_permit_says_how_many_there_are() {
    let other = Kind::Permit { weight: 1, limit: 5 };
    assert_eq!(last_of(&queue(&[X, permit(1), other])).other_limit(), Some(3));
    // The one in the middle is about to be refused. Until then it is in the way.
    let ahead = last_of(&queue(&[permit(1), other, permit(1)]));
    assert_eq!((ahead.other_limit(), ahead.duty()), (None, Duty::After(1)));
}
