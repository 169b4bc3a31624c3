//! How many queues are looked at together, and up to which attempt each.

use lock_core::Request;

use super::*;
use crate::{layout::dialect::Dialect, queue::schedule::next_look};

const TTL: Duration = Duration::from_secs(30);

fn name(name: &str) -> LockName {
    LockName::new(name).unwrap()
}

/// Registers an attempt that waits with this token. It looks by itself after seconds.
fn waits(book: &mut Book, of: &str, kind: Kind, token: u64) -> Arc<Attempt> {
    let now = Clock::Boot.now();
    let mut request = Request::new(name(of), TTL);
    request.kind = kind;
    let attempt = Attempt::new(&request, TTL / 3, &lock_core::Attempt::new());
    book.attempts.enter(&attempt, now).unwrap();
    attempt.waits(now, token);
    let rings = book.rings;
    book.wait(&attempt, next_look(Dialect::Postgres, 1, TTL, None), rings);
    attempt
}

#[test]
fn a_look_is_about_the_first_waiters_up_to_an_exclusive_one() {
    let mut book = Book::default();
    // They do not come in the order of their tokens.
    let kinds = [(7, Kind::Exclusive), (3, Kind::Shared), (5, Kind::Shared), (9, Kind::Exclusive)];
    let attempts = kinds.map(|(token, kind)| waits(&mut book, "orders", kind, token));
    let look = |book: &mut Book| {
        assert!(book.ring(&name("orders")));
        let looks = book.start_looks(Clock::Boot.now());
        let [looked] = &looks[..] else { panic!("not one queue") };
        let tokens: Vec<_> = looked.first.iter().filter_map(|it| it.waiting_token()).collect();
        assert_eq!(tokens.last(), Some(&looked.last));
        tokens
    };
    assert_eq!(look(&mut book), [3, 5, 7]);
    attempts[1].admitted();
    attempts[2].gone();
    assert_eq!(book.first_waiting(&name("orders")), Some(7));
    assert_eq!(look(&mut book), [7]);
    book.forget(&attempts[0]);
    assert_eq!(look(&mut book), [9]);
    attempts[3].gone();
    attempts.iter().for_each(|attempt| book.forget(attempt));
    assert!(!book.ring(&name("orders")) && book.next_look() == Instant::NEVER);
}

#[test]
fn a_ring_looks_at_one_queue_and_a_crowd_of_queues_is_looked_at_in_parts() {
    let mut book = Book::default();
    for number in 0..2 * MOST + 1 {
        waits(&mut book, &format!("n{number}"), Kind::Exclusive, 1);
    }
    let now = Clock::Boot.now();
    assert!(book.start_looks(now).is_empty(), "nothing is due");
    book.ring(&name("n7"));
    let rung = book.start_looks(now);
    assert_eq!(rung.iter().map(|looked| &looked.name).collect::<Vec<_>>(), [&name("n7")]);
    assert!(book.next_look() > now);
    let later = now + TTL;
    let parts = [(); 4].map(|()| book.start_looks(later).len());
    assert_eq!(parts, [MOST, MOST, 1, 0]);
}

#[test]
fn no_queue_is_looked_at_in_a_pause() {
    let mut book = Book::default();
    waits(&mut book, "orders", Kind::Exclusive, 1);
    let (now, end) = (Clock::Boot.now(), Clock::Boot.now() + TTL);
    book.paused = end;
    book.ring(&name("orders"));
    assert!(book.start_looks(now).is_empty());
    assert_eq!(book.next_look(), end);
    assert_eq!(book.start_looks(end).len(), 1);
}
