//! When a client looks at the queues of its waiting attempts.

use std::time::Duration;

use lock_core::{Clock, Instant, deadline::jitter};

use crate::layout::{dialect::Dialect, row::Row};

/// Looks that are due at about the same time are made together.
pub(crate) const TOGETHER: Duration = Duration::from_millis(2);
/// Most queues that are looked at together, and most attempts of each at first.
pub(crate) const MOST: usize = 500;
/// How long after the expiry of the attempt ahead the head looks. The others look later: the head
/// goes first.
const HEAD_SLACK: Duration = Duration::from_millis(2);
const OTHERS_SLACK: Duration = Duration::from_millis(400);
/// How long one look waits for its answer.
pub(crate) const LIMIT: Duration = Duration::from_secs(2);

/// The newest holder of a queue that is no attempt of this client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Head {
    pub(crate) token: u64,
    /// When this client first saw it. It may have been granted long before.
    pub(crate) since: Instant,
}

/// When to look at a queue, and why.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Look {
    pub(crate) at: Instant,
    pub(crate) why: Why,
    pub(crate) dialect: Dialect,
    /// Place of this client's first waiting attempt.
    pub(crate) place: usize,
    /// `None` if all holders are attempts of this client.
    pub(crate) head: Option<Head>,
    /// When the first attempt ahead expires, unless it is renewed.
    pub(crate) expiry: Instant,
    /// Most attempts to look at: twice as many after each look that lets in all of them.
    pub(crate) most: usize,
    /// The version of the whole database at the last look, and when that was.
    pub(crate) seen: Option<(u64, Instant)>,
}

/// Why a look is due. The greater reason counts.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Why {
    /// The pause since the last look is over.
    Pace,
    /// A change was reported.
    Rung,
    /// An attempt ahead has expired, unless it was renewed.
    Expiry,
}

/// How long the attempt at this place of the queue waits between two looks: the head looks often,
/// the tail seldom. A holder that has just come may leave soon: it is looked at after a quarter of
/// its age, up to the usual step.
pub fn pace(dialect: Dialect, place: usize, age: Duration) -> Duration {
    let [shortest, step, longest] = match dialect {
        Dialect::Sqlite => [1, 10, 250],
        Dialect::MySql => [1, 25, 1000],
        // Only in case a push was lost.
        Dialect::Postgres => [5000, 5000, 5000],
    }
    .map(Duration::from_millis);
    let factor = u32::try_from(place.max(1)).unwrap_or(u32::MAX);
    (age / 4).clamp(shortest, step).saturating_mul(factor).min(longest)
}

/// Time until the first attempt ahead of this place expires. All of them count, not only the one
/// that it waits for: expired ones among the others would seem to stay, and no change would be
/// reported.
pub(crate) fn blocked_for(queue: &[Row], at: usize) -> Duration {
    queue[..at].iter().map(|row| row.left).min().unwrap_or_default()
}

pub(crate) fn next_look(
    dialect: Dialect,
    place: usize,
    left: Duration,
    head: Option<Head>,
) -> Look {
    let now = Clock::Boot.now();
    let slack = if place == 1 { HEAD_SLACK } else { jitter(OTHERS_SLACK) };
    let expiry = now + left + slack;
    let look =
        Look { at: now, why: Why::Pace, dialect, place, head, expiry, most: MOST, seen: None };
    look.after(now)
}

impl Look {
    /// Returns the same look, due now.
    pub(crate) fn ring(self) -> Self {
        Self { at: Instant::default(), why: self.why.max(Why::Rung), ..self }
    }

    /// The next look, if this one shows nothing new.
    pub(crate) fn after(self, now: Instant) -> Self {
        // A holder of this client rings when it leaves: it need not be followed.
        let age = self.head.map_or(Duration::MAX, |head| now.since(head.since));
        let next = now + jitter(pace(self.dialect, self.place, age));
        match self.expiry <= next {
            true => Self { at: self.expiry, why: Why::Expiry, ..self },
            false => Self { at: next, why: Why::Pace, ..self },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLLED: [Dialect; 2] = [Dialect::Sqlite, Dialect::MySql];
    /// How many looks more a holder costs than looks at the usual step: see `docs/sizing.md`.
    const MORE: u32 = 30;

    /// Most looks at a holder until it has this age: each pause is as short as chance allows.
    fn looks(hold: Duration, pace: impl Fn(Duration) -> Duration) -> u32 {
        let (mut age, mut looks) = (Duration::ZERO, 0);
        while age < hold {
            age += pace(age) / 2;
            looks += 1;
        }
        looks
    }

    #[test]
    fn the_pace_follows_the_age_of_the_holder() {
        let micros = |dialect, place, millis| {
            pace(dialect, place, Duration::from_millis(millis)).as_micros()
        };
        for dialect in POLLED {
            assert_eq!([0, 4, 20].map(|age| micros(dialect, 1, age)), [1_000, 1_000, 5_000]);
            assert_eq!([0, 4, 20].map(|age| micros(dialect, 3, age)), [3_000, 3_000, 15_000]);
        }
        let old = |dialect| [1, 9, 99].map(|place| micros(dialect, place, 60_000));
        assert_eq!(old(Dialect::Sqlite), [10_000, 90_000, 250_000]);
        assert_eq!(old(Dialect::MySql), [25_000, 225_000, 1_000_000]);
    }

    #[test]
    fn a_new_holder_is_looked_at_sooner_than_an_old_one() {
        let (now, far) = (Clock::Boot.now(), Duration::from_secs(60));
        let head = Some(Head { token: 1, since: now });
        for dialect in POLLED {
            let look = next_look(dialect, 1, far, head);
            let after = |age| look.after(now + age).at.since(now + age);
            assert!(after(Duration::ZERO) <= Duration::from_millis(1));
            assert!(after(far / 2) >= Duration::from_millis(5));
            let unknown = Look { head: None, ..look }.after(now).at.since(now);
            assert!(unknown >= Duration::from_millis(5));
        }
    }

    #[test]
    fn a_long_hold_costs_a_bounded_number_of_looks_more() {
        for (dialect, seconds) in POLLED.into_iter().flat_map(|it| [(it, 1), (it, 60)]) {
            for place in [1, 2, 3, 10, 100] {
                let hold = Duration::from_secs(seconds);
                let usual = looks(hold, |_| pace(dialect, place, Duration::MAX));
                let all = looks(hold, |age| pace(dialect, place, age));
                println!("{dialect:?}, place {place}, {hold:?}: {all} looks, usually {usual}");
                assert!(all <= usual + MORE, "{all} looks at place {place}, usually {usual}");
            }
        }
    }

    #[test]
    fn where_clients_are_pushed_no_age_counts() {
        for (place, age) in [(1, 0), (1, 60), (500, 0)] {
            let pace = pace(Dialect::Postgres, place, Duration::from_secs(age));
            assert_eq!(pace, Duration::from_secs(5));
        }
    }
}
