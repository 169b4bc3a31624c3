//! The rules of an attempt's state, without a server.

use lock_core::{LockName, LossReason, validity::safe_until};
use uuid::Uuid;

use super::{
    waiting::{FIRST_ASK, LONGEST_ASK},
    *,
};
use crate::{config::RedisConfig, wire::answer::Waits};

const TTL: Duration = Duration::from_secs(9);

fn attempt() -> Arc<Attempt> {
    attempt_of(&Request::new(LockName::new("orders").unwrap(), TTL))
}

fn attempt_of(request: &Request) -> Arc<Attempt> {
    let key = Key::new(&RedisConfig::new("localhost", 6379), &request.name);
    let ticket = Ticket::queued("0123456789abcdef", Uuid::new_v4());
    Attempt::new(Mode::Queue, key, ticket, request, request.ttl / 3)
}

/// A lock that is not renewed by itself.
fn fixed() -> Arc<Attempt> {
    let mut request = Request::new(LockName::new("orders").unwrap(), TTL);
    request.term = Term::Fixed;
    attempt_of(&request)
}

fn answer(fence: u64) -> Waits {
    Waits { fence, pttl: Some(TTL), place: None, foreign: None }
}

fn granted(attempt: &Attempt) -> Option<(Instant, u64)> {
    attempt.look(|stage| match stage {
        Stage::Granted { sent, token } => Some((*sent, *token)),
        _ => None,
    })
}

#[test]
fn a_push_of_a_grant_before_the_last_answer_counts_for_nothing() {
    let attempt = attempt();
    let sent = Clock::Boot.now();
    attempt.waits(sent, answer(7));
    attempt.pushed(7);
    assert_eq!(granted(&attempt), None);
    attempt.waits(sent + TTL / 3, answer(9));
    attempt.pushed(8);
    assert_eq!(granted(&attempt), None);
    attempt.pushed(10);
    assert_eq!(granted(&attempt), Some((sent + TTL / 3, 10)));
}

#[test]
fn an_answer_that_was_overtaken_changes_nothing() {
    let attempt = attempt();
    let sent = Clock::Boot.now();
    attempt.waits(sent + TTL / 3, answer(9));
    attempt.waits(sent, answer(5));
    attempt.pushed(8);
    assert_eq!(granted(&attempt), None);
    attempt.pushed(10);
    assert_eq!(granted(&attempt), Some((sent + TTL / 3, 10)));
    attempt.waits(sent + TTL, answer(10));
    assert_eq!(granted(&attempt), Some((sent + TTL / 3, 10)));
}

#[test]
fn a_push_may_be_seen_before_the_answer_that_came_before_it() {
    for (token, grant) in [(8, true), (7, false)] {
        let attempt = attempt();
        let sent = Clock::Boot.now();
        attempt.pushed(token);
        attempt.waits(sent, answer(7));
        assert_eq!(granted(&attempt), grant.then_some((sent, token)));
    }
}

#[test]
fn the_head_asks_first_and_it_alone_polls_a_foreign_holder() {
    let attempt = attempt();
    let ask = |pttl, place, foreign: bool, count| {
        let foreign = foreign.then_some(7);
        let polls = Polls { holder: foreign, count };
        attempt.next_ask(Waits { fence: 0, pttl, place, foreign }, polls).0
    };
    let ms = Duration::from_millis;
    // The renewal comes before the holder can have died.
    assert_eq!(ask(Some(TTL), Some(1), false, 0), None);
    assert_eq!(ask(Some(ms(100)), Some(1), false, 0), Some(ms(102)));
    let other = ask(Some(ms(100)), None, false, 0).unwrap();
    assert!((ms(300)..=ms(500)).contains(&other), "{other:?}");
    // A foreign holder without an expiry: only the head polls, and less and less often.
    assert!((ms(25)..=ms(50)).contains(&ask(None, Some(1), true, 0).unwrap()));
    assert!((ms(500)..=ms(1000)).contains(&ask(None, Some(1), true, 16).unwrap()));
    assert_eq!(ask(None, None, true, 0), None);
}

#[test]
fn another_foreign_holder_is_asked_for_as_soon_as_the_first_one_was() {
    let attempt = attempt();
    let answer = |holder| Waits { foreign: holder, pttl: None, place: Some(1), ..answer(0) };
    let mut polls = Polls::default();
    for _ in 0..10 {
        (_, polls) = attempt.next_ask(answer(Some(1)), polls);
    }
    let (rare, polls) = attempt.next_ask(answer(Some(1)), polls);
    assert!(rare.unwrap() >= LONGEST_ASK / 2);
    let (soon, polls) = attempt.next_ask(answer(Some(2)), polls);
    assert!(soon.unwrap() <= FIRST_ASK);
    let (none, polls) = attempt.next_ask(answer(None), polls);
    assert_eq!(none, None);
    assert!(attempt.next_ask(answer(Some(2)), polls).0.unwrap() <= FIRST_ASK);
}

#[test]
fn three_times_a_day_a_renewal_keeps_the_last_token_too() {
    let attempt = attempt();
    let sent = Clock::Boot.now();
    let _validity = attempt.hold(sent, 7).unwrap();
    let later = sent + FENCE_PERIOD;
    attempt.renewed_alone(later - TTL, true);
    assert_eq!(attempt.role(later - Duration::from_secs(1)), Some(Role::Holds));
    assert_eq!(attempt.role(later), Some(Role::Shares));
    attempt.answered(later, AttemptState::Holds(7));
    assert_eq!(attempt.role(later + TTL / 3), Some(Role::Holds));
}

#[test]
fn an_attempt_that_is_gone_ends_at_every_stage() {
    let asking = attempt();
    let waiting = attempt();
    waiting.waits(Clock::Boot.now(), answer(7));
    let granted = attempt();
    granted.waits(Clock::Boot.now(), answer(7));
    granted.pushed(8);
    for attempt in [asking, waiting, granted] {
        attempt.gone();
        attempt.pushed(9);
        assert_eq!(attempt.hold(Clock::Boot.now(), 7).unwrap_err(), End::Gone);
    }
    let held = attempt();
    let validity = held.hold(Clock::Boot.now(), 7).unwrap();
    held.gone();
    assert_eq!(validity.loss(), Some(LossReason::EntryGone));
}

#[test]
fn a_round_that_was_asked_before_a_downgrade_loses_nothing() {
    let attempt = attempt();
    let sent = Clock::Boot.now();
    let validity = attempt.hold(sent, 7).unwrap();
    assert_eq!(attempt.role(sent + TTL / 5), Some(Role::Holds));
    attempt.share(true);
    assert_eq!(attempt.role(sent + TTL / 5), Some(Role::Shares));
    attempt.renewed_alone(sent + TTL / 3, false);
    assert!(!validity.has_ended());
    attempt.answered(sent + TTL / 3, AttemptState::Holds(7));
    assert_eq!(validity.until(), safe_until(sent + TTL / 3, TTL));
    attempt.answered(sent + TTL / 2, AttemptState::Gone);
    assert_eq!(validity.loss(), Some(LossReason::EntryGone));
}

#[test]
fn a_late_answer_from_between_two_conversions_loses_nothing() {
    let attempt = attempt();
    let sent = Clock::Boot.now();
    let validity = attempt.hold(sent, 7).unwrap();
    attempt.share(true);
    attempt.share(false);
    attempt.renewed_alone(sent, false);
    assert!(!validity.has_ended());
    attempt.renewed_alone(Clock::Boot.now(), false);
    assert_eq!(validity.loss(), Some(LossReason::EntryGone));
}

#[test]
fn a_sign_of_a_failover_leaves_the_time_of_the_renewal_before_the_last() {
    let attempt = attempt();
    let sent = Clock::Boot.now();
    let validity = attempt.hold(sent, 7).unwrap();
    // Never renewed: the time of one request.
    attempt.doubt(sent);
    assert_eq!(validity.until(), sent + attempt.patience());
    attempt.settle();
    for renewal in 1..=3 {
        attempt.renewed_alone(sent + TTL / 3 * renewal, true);
    }
    assert_eq!(validity.until(), safe_until(sent + TTL, TTL));
    attempt.doubt(sent + TTL);
    assert_eq!(validity.until(), safe_until(sent + TTL / 3 * 2, TTL));
    // Only the new primary's answers count in full.
    attempt.taken_over(sent + TTL);
    attempt.renewed_alone(sent + TTL, true);
    attempt.renewed_alone(sent + TTL * 2, true);
    assert_eq!(validity.until(), safe_until(sent + TTL * 2, TTL));
}

/// Its next renewal is far away, and replicas have had its grant for long.
#[test]
fn a_sign_of_a_failover_leaves_an_old_lock_as_it_is() {
    for (ttl, age) in [(TTL, TTL / 3), (TTL * 100, Duration::from_secs(10))] {
        for term in [Term::Renewed, Term::Fixed] {
            let mut request = Request::new(LockName::new("orders").unwrap(), ttl);
            request.term = term;
            let attempt = attempt_of(&request);
            let sent = Clock::Boot.now();
            let validity = attempt.hold(sent, 7).unwrap();
            attempt.doubt(sent + age - TTL / 100);
            assert_eq!(validity.until(), sent + age - TTL / 100 + attempt.patience());
            attempt.settle();
            attempt.doubt(sent + age);
            assert_eq!(validity.until(), safe_until(sent, ttl));
        }
    }
}

#[test]
fn a_suspected_primary_does_not_give_the_whole_time_until_it_is_settled() {
    let attempt = attempt();
    let sent = Clock::Boot.now();
    let validity = attempt.hold(sent, 7).unwrap();
    attempt.renewed_alone(sent + TTL / 3, true);
    attempt.doubt(sent + TTL / 2);
    assert_eq!(validity.until(), safe_until(sent, TTL));
    // Asked before the sign, answered after it.
    attempt.renewed_alone(sent + TTL / 2 - TTL / 100, true);
    assert_eq!(validity.until(), safe_until(sent, TTL));
    attempt.renewed_alone(sent + TTL / 3 * 2, true);
    assert_eq!(validity.until(), safe_until(sent + TTL / 3, TTL));
    attempt.settle();
    assert_eq!(validity.until(), safe_until(sent + TTL / 3 * 2, TTL));
    attempt.renewed_alone(sent + TTL, true);
    assert_eq!(validity.until(), safe_until(sent + TTL, TTL));
}

/// The table of states in `failover`.
#[test]
fn a_holder_in_each_state_of_doubt_learns_what_it_must() {
    let (sent, renewed) = (Clock::Boot.now(), Clock::Boot.now() + TTL / 3);
    let (now, later) = (renewed + TTL / 10, renewed + TTL / 9);
    for missing in [None, Some(LossReason::EntryGone), Some(LossReason::Failover)] {
        for doubted in [false, true] {
            let held = || {
                let attempt = attempt();
                let validity = attempt.hold(sent, 7).unwrap();
                attempt.renewed_alone(renewed, true);
                match missing {
                    None => {}
                    Some(LossReason::Failover) => attempt.taken_over(now),
                    Some(_) => attempt.check(now),
                }
                if doubted {
                    attempt.doubt(now);
                }
                assert_eq!(attempt.role(now), missing.map(|_| Role::Shares));
                (attempt, validity)
            };
            let (found, validity) = held();
            found.answered(later, AttemptState::Holds(7));
            assert_eq!(validity.until(), safe_until(if doubted { renewed } else { later }, TTL));
            assert_eq!(found.is_missing(), doubted && missing.is_some());
            found.settle();
            assert_eq!(validity.until(), safe_until(later, TTL));
            let (gone, validity) = held();
            gone.answered(later, AttemptState::Gone);
            assert_eq!(validity.loss(), missing.or(Some(LossReason::EntryGone)));
            let (queued, validity) = held();
            queued.answered(later, AttemptState::Waits(answer(6)));
            assert_eq!(validity.loss(), missing);
        }
    }
}

#[test]
fn only_a_server_that_took_over_makes_a_loss_a_failover() {
    for (taken_over, found, reason) in [
        (false, false, LossReason::EntryGone),
        (true, false, LossReason::Failover),
        (true, true, LossReason::EntryGone),
    ] {
        let attempt = attempt();
        let sent = Clock::Boot.now();
        let validity = attempt.hold(sent, 7).unwrap();
        if taken_over {
            attempt.taken_over(sent);
        }
        if found {
            attempt.renewed_alone(sent + TTL / 3, true);
        }
        attempt.gone();
        assert_eq!(validity.loss(), Some(reason));
    }
}

/// The key would end before the holder's deadline otherwise, and another client would get in.
#[test]
fn a_renewal_by_hand_gives_a_fixed_term_a_whole_ttl() {
    let attempt = fixed();
    attempt.hold(Instant::default(), 7).unwrap();
    assert_eq!(attempt.renewal().least, Duration::from_millis(1));
    assert_eq!(attempt.renewal_by_hand().least, TTL);
    attempt.renewed_by_hand(Clock::Boot.now(), 7);
    assert!(attempt.renewal().least > TTL / 3 * 2);
    assert_eq!(attempt.renewal().member.ttl, TTL);
}

/// The server may lack that renewal, and a check there has asked for the old term's time.
#[test]
fn a_renewal_by_hand_that_its_server_may_have_lost_moves_no_deadline() {
    type Event = fn(&Attempt, Instant);
    // After a check it may have restarted.
    let events: [(&[Event], bool); 4] = [
        (&[Attempt::doubt], true),
        (&[Attempt::check], false),
        (&[Attempt::check, Attempt::doubt], false),
        (&[Attempt::doubt, Attempt::taken_over], false),
    ];
    for (events, counts) in events {
        let attempt = fixed();
        let sent = Clock::Boot.now();
        let validity = attempt.hold(sent, 7).unwrap();
        let (renewed, sign) = (sent + TTL / 3, sent + TTL / 2);
        events.iter().for_each(|event| event(&attempt, sign));
        attempt.renewed_by_hand(renewed, 7);
        assert_eq!(validity.until(), safe_until(sent, TTL));
        // Its answer ends no search on the next connection.
        assert_eq!(attempt.is_missing(), !counts);
        attempt.settle();
        attempt.answered(sign + TTL / 100, AttemptState::Holds(7));
        let since = if counts { renewed } else { sent };
        assert_eq!(validity.until(), safe_until(since, TTL));
    }
}

#[test]
fn a_young_grant_is_renewed_at_once_when_its_server_is_doubted() {
    for term in [Term::Renewed, Term::Fixed] {
        let mut request = Request::new(LockName::new("orders").unwrap(), TTL);
        request.term = term;
        let attempt = attempt_of(&request);
        let sent = Clock::Boot.now();
        let validity = attempt.hold(sent, 7).unwrap();
        assert_eq!(attempt.role(sent), None);
        attempt.doubt(sent);
        assert!(attempt.role(sent).is_some());
        attempt.answered(sent + TTL / 100, AttemptState::Holds(7));
        // The grant itself counts now, and what confirms it does not yet.
        assert_eq!(validity.until(), safe_until(sent, TTL));
        assert_eq!(attempt.role(sent), None);
    }
}

#[test]
fn after_a_reconnect_a_young_hold_is_looked_for() {
    let attempt = attempt();
    let sent = Clock::Boot.now();
    let validity = attempt.hold(sent, 7).unwrap();
    attempt.check(sent);
    assert_eq!(attempt.role(sent), Some(Role::Shares));
    attempt.answered(sent + TTL / 100, AttemptState::Holds(7));
    assert_eq!(attempt.role(sent + TTL / 100), None);
    attempt.check(sent + TTL / 100);
    attempt.gone();
    assert_eq!(validity.loss(), Some(LossReason::EntryGone));
}

#[test]
fn a_server_that_took_over_and_only_knows_the_wait_loses_the_hold() {
    let attempt = attempt();
    let sent = Clock::Boot.now();
    let validity = attempt.hold(sent, 7).unwrap();
    attempt.taken_over(sent + TTL / 3);
    // Asked at the old server.
    attempt.answered(sent, AttemptState::Waits(answer(6)));
    assert_eq!(validity.loss(), None);
    attempt.answered(sent + TTL / 3, AttemptState::Waits(answer(6)));
    assert_eq!(validity.loss(), Some(LossReason::Failover));
}

#[test]
fn a_server_that_took_over_and_does_not_know_the_grant_leaves_the_place() {
    let attempt = attempt();
    let sent = Clock::Boot.now();
    attempt.waits(sent, answer(6));
    attempt.pushed(7);
    // No other server: it is not in the queue any more.
    assert_eq!(attempt.waits_again(sent, answer(7)), None);
    assert_eq!(granted(&attempt), Some((sent, 7)));
    attempt.taken_over(sent + TTL / 3);
    // Asked at the old server.
    attempt.waits_again(sent, answer(6));
    assert_eq!(granted(&attempt), Some((sent, 7)));
    attempt.waits_again(sent + TTL / 3, answer(6));
    assert!(attempt.is_waiting() && !attempt.is_missing());
    attempt.pushed(8);
    assert_eq!(granted(&attempt), Some((sent + TTL / 3, 8)));
}

#[test]
fn a_server_that_took_over_and_granted_anew_loses_the_hold() {
    for (taken_over, token, loss) in
        [(false, 9, None), (true, 7, None), (true, 9, Some(LossReason::Failover))]
    {
        let attempt = attempt();
        let sent = Clock::Boot.now();
        let validity = attempt.hold(sent, 7).unwrap();
        if taken_over {
            attempt.taken_over(sent);
            // Only this answer tells the token.
            assert_eq!(attempt.role(sent), Some(Role::Shares));
        }
        attempt.answered(sent + TTL / 3, AttemptState::Holds(token));
        assert_eq!(validity.loss(), loss);
    }
}
