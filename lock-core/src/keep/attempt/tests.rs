//! Every order in which a few events may happen to an attempt.

use std::{
    pin::pin,
    task::{Context, Poll, Waker},
};

use super::*;

const TTL: Duration = Duration::from_secs(9);

type Plain = Progress<(), u64, ()>;

/// The possible events, each at a time of its own.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Event {
    Queued,
    Granted,
    Confirmed,
    ConfirmedLate,
    Gone,
    Expired,
    Closed,
    Held,
}

const EVENTS: [Event; 8] = [
    Event::Queued,
    Event::Granted,
    Event::Confirmed,
    Event::ConfirmedLate,
    Event::Gone,
    Event::Expired,
    Event::Closed,
    Event::Held,
];

fn request() -> Request {
    Request::new(LockName::new("orders").unwrap(), TTL)
}

fn attempt() -> Plain {
    Progress::new(Uuid::new_v4(), &request(), TTL / 3, ())
}

fn start() -> Instant {
    Instant::default() + Duration::from_secs(3600)
}

/// The state of an attempt seen from outside, kept by a second and simpler model.
#[derive(Default)]
struct Model {
    over: Option<End>,
    confirmed: Option<Instant>,
    held: Option<Validity>,
    lost: Option<LossReason>,
}

impl Model {
    fn happens(&mut self, attempt: &Plain, event: Event, now: Instant) {
        let waits = attempt.is_waiting();
        match event {
            Event::Queued => attempt.change(|stage| {
                if let Stage::Asking(()) = stage {
                    *stage = Stage::Waiting { sent: now, note: 7 };
                    self.confirmed = Some(now);
                }
            }),
            Event::Granted => attempt.change(|stage| {
                if let Stage::Waiting { sent, note } = *stage {
                    *stage = Stage::Granted { sent, token: note };
                }
            }),
            Event::Confirmed => self.confirm(attempt, now),
            // Overtaken by a later one.
            Event::ConfirmedLate => self.confirm(attempt, now - Duration::from_secs(3)),
            Event::Gone => {
                attempt.gone(now);
                let reason = LossReason::EntryGone;
                let end = match self.confirmed {
                    Some(sent) => End::gone(reason, sent, TTL, now),
                    None => End::Gone { reason },
                };
                self.ends(end, reason);
            }
            Event::Expired => {
                attempt.expire_wait(now + TTL);
                if waits {
                    self.over = Some(End::Unreachable);
                }
            }
            Event::Closed => {
                attempt.closed();
                self.ends(End::Closed, LossReason::Closed);
                self.over = Some(End::Closed);
            }
            Event::Held => self.hold(attempt, now),
        }
    }

    fn confirm(&mut self, attempt: &Plain, sent: Instant) {
        attempt.renewed(sent);
        if self.over.is_none() && self.confirmed.is_some() {
            self.confirmed = self.confirmed.max(Some(sent));
        }
    }

    fn ends(&mut self, end: End, reason: LossReason) {
        match &self.held {
            Some(_) => self.lost = self.lost.or(Some(reason)),
            None => self.over = self.over.or(Some(end)),
        }
    }

    /// As a driver does, once.
    fn hold(&mut self, attempt: &Plain, sent: Instant) {
        if self.held.is_some() {
            return;
        }
        match (attempt.hold(sent, ()), self.over) {
            (Ok(validity), None) => {
                self.confirmed = Some(sent);
                self.held = Some(validity);
            }
            (Err(end), Some(over)) => assert!(end == over || over == End::Closed, "{end:?}"),
            (held, over) => panic!("{held:?} after {over:?}"),
        }
    }

    fn check(&self, attempt: &Plain) {
        if let Some(validity) = &self.held {
            assert_eq!(validity.loss(), self.lost);
            let confirmed = self.confirmed.expect("it is held");
            assert!(validity.until() <= safe_until(confirmed, TTL), "valid for too long");
        }
        attempt.look(|stage| match stage {
            Stage::Over(end) => assert_eq!(Some(*end), self.over),
            Stage::Waiting { sent, .. } | Stage::Granted { sent, .. } => {
                assert_eq!(
                    (Some(*sent), self.over, self.held.is_some()),
                    (self.confirmed, None, false)
                );
            }
            Stage::Held { sent, .. } => {
                assert_eq!((Some(*sent), self.over), (self.confirmed, None));
                assert!(self.held.is_some());
            }
            Stage::Asking(()) => assert!(self.over.is_none() && self.held.is_none()),
        });
    }
}

/// All sequences of events of this length, each in turn.
fn each_sequence(length: usize, mut check: impl FnMut(&[Event])) {
    let mut sequence = vec![0; length];
    loop {
        let events: Vec<_> = sequence.iter().map(|i| EVENTS[*i]).collect();
        check(&events);
        let Some(at) = sequence.iter().rposition(|i| *i + 1 < EVENTS.len()) else { return };
        sequence[at] += 1;
        sequence[at + 1..].fill(0);
    }
}

#[test]
fn in_every_order_of_events_the_stage_agrees_with_a_simpler_model() {
    each_sequence(5, |events| {
        let (attempt, mut seen, mut now) = (attempt(), Model::default(), start());
        for event in events {
            now = now + Duration::from_secs(1);
            seen.happens(&attempt, *event, now);
            seen.check(&attempt);
        }
    });
}

#[test]
fn a_decision_wakes_its_waiter_at_any_time() {
    let mut woken = Context::from_waker(Waker::noop());
    each_sequence(4, |events| {
        let (attempt, mut seen, mut now) = (attempt(), Model::default(), start());
        let mut wait = pin!(attempt.decided());
        for event in events {
            let decided = attempt.look(Stage::is_decided);
            match wait.as_mut().poll(&mut woken) {
                Poll::Ready(answer) => {
                    assert!(decided, "{events:?}");
                    assert_eq!(answer.err(), seen.over, "{events:?}");
                    return;
                }
                Poll::Pending => assert!(!decided, "{events:?}: nobody has told it"),
            }
            now = now + Duration::from_secs(1);
            seen.happens(&attempt, *event, now);
        }
    });
}

#[test]
fn only_older_holds_are_renewed() {
    let (attempt, sent) = (attempt(), start());
    assert!(!attempt.is_renewed(sent));
    let validity = attempt.hold(sent, ()).unwrap();
    assert!(!attempt.is_renewed(sent + TTL / 7));
    assert!(attempt.is_renewed(sent + TTL / 5));
    validity.lose(LossReason::Expired);
    assert!(!attempt.is_renewed(sent + TTL / 5));
    let fixed = Plain { term: Term::Fixed, ..self::attempt() };
    fixed.hold(sent, ()).unwrap();
    assert!(!fixed.is_renewed(sent + TTL / 5));
}

#[test]
fn a_renewal_counts_from_when_it_was_sent() {
    let (attempt, sent) = (attempt(), start());
    let validity = attempt.hold(sent, ()).unwrap();
    attempt.renewed(sent + TTL / 3);
    assert_eq!(validity.until(), safe_until(sent + TTL / 3, TTL));
    attempt.renewed(sent);
    assert_eq!(validity.until(), safe_until(sent + TTL / 3, TTL));
    attempt.gone(sent + TTL / 3);
    assert_eq!(validity.loss(), Some(LossReason::EntryGone));
}

#[test]
fn a_wait_ends_a_ttl_after_the_last_confirmation() {
    let (attempt, sent) = (attempt(), start());
    attempt.change(|stage| *stage = Stage::Waiting { sent, note: 7 });
    attempt.renewed(sent + TTL / 3);
    attempt.expire_wait(sent + TTL);
    assert!(attempt.is_waiting());
    attempt.expire_wait(sent + TTL / 3 + TTL);
    assert!(attempt.look(|stage| matches!(stage, Stage::Over(End::Unreachable))));
}

/// What is found missing after an outage has expired. Before, somebody must have removed it.
#[test]
fn a_waiter_that_is_gone_has_expired_after_a_ttl_and_was_revoked_before() {
    let sent = start();
    for (late, expected) in [(TTL / 3, LossReason::EntryGone), (TTL, LossReason::Expired)] {
        let attempt = attempt();
        attempt.change(|stage| *stage = Stage::Waiting { sent, note: 7 });
        attempt.gone(sent + late);
        let end = attempt.hold(sent, ()).unwrap_err();
        let told = end.error(("a store", "the server"), TTL);
        assert!(matches!(told, Error::PlaceLost { reason, .. } if reason == expected), "{told}");
    }
}

#[test]
fn a_revoke_that_the_store_reports_is_no_expiry_however_late_it_comes() {
    let (attempt, sent) = (attempt(), start());
    attempt.change(|stage| *stage = Stage::Waiting { sent, note: 7 });
    attempt.revoked(sent + TTL * 2);
    assert_eq!(attempt.over(), Some(End::Gone { reason: LossReason::EntryGone }));
}
