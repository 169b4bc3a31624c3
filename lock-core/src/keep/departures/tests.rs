//! Departures in random orders of arrivals, answers and outages.

use std::time::Duration;

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{Effect, keep::errors::unavailable};

const ROOM: usize = 3;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// This many attempts leave together.
    Leave(usize),
    /// One of the requests on their way is answered, and followed by another one if departures
    /// wait.
    Answer(usize),
    /// The store does not answer one of them, and time passes.
    Silence(usize),
    /// The future of one of them is dropped.
    Drop(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1usize..6).prop_map(Step::Leave),
        3 => (0usize..4).prop_map(Step::Answer),
        2 => (0usize..4).prop_map(Step::Silence),
        1 => (0usize..4).prop_map(Step::Drop),
    ]
}

struct World {
    departures: Departures<u32>,
    /// The departures of each request on its way.
    requests: Vec<Vec<Departure<u32>>>,
    answers: Vec<oneshot::Receiver<Result<()>>>,
    now: Instant,
}

impl World {
    fn leave(&mut self, count: usize, most: usize) {
        let (reply, answer) = oneshot::channel();
        let deadline = self.now + Duration::from_secs(5);
        let departure = Departure { what: 0, count, deadline, reply: Some(reply) };
        self.answers.push(answer);
        if self.departures.admit(departure, most) {
            self.send();
        }
    }

    fn send(&mut self) {
        let taken = self.departures.take(ROOM);
        let count: usize = taken.iter().map(|departure| departure.count).sum();
        assert!(count <= ROOM || taken.len() == 1, "too many for one request");
        assert!(!taken.is_empty(), "a request for nothing");
        self.requests.push(taken);
    }

    fn next(&mut self) {
        if !self.departures.end_request(false) {
            self.send();
        }
    }
}

proptest! {
    #[test]
    fn each_departure_gets_one_result_and_none_waits_without_a_request(
        steps in vec(step(), 1..60),
        most in 1usize..4,
    ) {
        let (departures, now) = (Departures::default(), Instant::default());
        let mut world = World { departures, requests: Vec::new(), answers: Vec::new(), now };
        let mut dropped = 0;
        for step in steps {
            match step {
                Step::Leave(count) => world.leave(count, most),
                Step::Answer(at) if at < world.requests.len() => {
                    let answered = world.requests.swap_remove(at);
                    answered.into_iter().for_each(|departure| departure.tell(Ok(())));
                    world.next();
                }
                Step::Silence(at) if at < world.requests.len() => {
                    world.now = world.now + Duration::from_secs(2);
                    let silent = world.requests.swap_remove(at);
                    let why = unavailable("store", "release", Effect::Unknown, "silent");
                    world.departures.failed(silent, &why, world.now);
                    world.next();
                }
                Step::Drop(at) if at < world.requests.len() => {
                    dropped += world.requests.swap_remove(at).len();
                    world.departures.end_request(true);
                }
                _ => {}
            }
            prop_assert!(world.requests.len() <= most);
            let waiting = lock(&world.departures.0).waiting.len();
            prop_assert_eq!(lock(&world.departures.0).requests, world.requests.len());
            // Only a dropped future leaves waiting departures to the next one.
            prop_assert!(waiting == 0 || !world.requests.is_empty() || dropped > 0);
        }
        while let Some(answered) = world.requests.pop() {
            answered.into_iter().for_each(|departure| departure.tell(Ok(())));
            world.next();
        }
        let left = lock(&world.departures.0).waiting.drain(..).count();
        let told = world.answers.iter_mut().filter_map(|answer| answer.try_recv().ok());
        let told: Vec<_> = told.collect();
        prop_assert_eq!(told.len() + dropped + left, world.answers.len());
        prop_assert!(left == 0 || dropped > 0);
        for late in told.iter().filter_map(|told| told.as_ref().err()) {
            prop_assert!(late.is_unavailable());
        }
    }
}

#[test]
fn a_refusal_is_reported_at_once_and_silence_at_the_deadline() {
    let departures = Departures::default();
    let soon = Instant::default() + Duration::from_secs(1);
    let silent = unavailable("store", "release", Effect::Unknown, "silent");
    let refused = crate::keep::errors::denied("store", "release", "no");
    for (why, now, told_now) in [
        (&silent, soon, true),
        (&silent, soon - Duration::from_millis(1), false),
        (&refused, Instant::default(), true),
    ] {
        let (reply, mut answer) = oneshot::channel();
        departures.admit(Departure { what: (), count: 1, deadline: soon, reply: Some(reply) }, 1);
        departures.failed(departures.take(1), why, now);
        match answer.try_recv() {
            Ok(told) => {
                assert!(told_now);
                assert_eq!(told.unwrap_err().to_string(), why.to_string());
            }
            Err(_) => assert!(!told_now),
        }
        departures.end_request(true);
        departures.take(usize::MAX);
    }
}
