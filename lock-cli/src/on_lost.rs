//! The treatment of a command whose lock is about to be lost.

use std::{str::FromStr, time::Duration};

use lock_core::{
    duration::{self, shown},
    validity::margin,
};
use serde::{Deserialize, Serialize};

use crate::exit::{Code, Failure};

/// The longest default grace.
const GRACE: Duration = Duration::from_secs(5);

/// The value of `--on-lost`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum OnLost {
    /// SIGTERM, and SIGKILL after the grace.
    Term(Option<Duration>),
    /// SIGKILL.
    Kill,
    /// Nothing.
    Ignore,
}

impl FromStr for OnLost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "term" => Ok(Self::Term(None)),
            None if text == "kill" => Ok(Self::Kill),
            None if text == "ignore" => Ok(Self::Ignore),
            Some(("term", grace)) => duration::parse(grace)
                .map(|grace| Self::Term(Some(grace)))
                .ok_or_else(|| format!("the grace: {}", duration::FORM)),
            _ => Err("expected term, term:GRACE (as in term:5s), kill or ignore".to_owned()),
        }
    }
}

/// The actions of the supervisor at a loss.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Policy {
    /// From SIGTERM to SIGKILL.
    pub(crate) grace: Duration,
    /// Whether the command may outlive the lock.
    pub(crate) ignore: bool,
}

impl OnLost {
    /// Fits it to a TTL and the longest hold. Renewals come every third of a TTL. A third of the
    /// TTL must be enough for the grace and the margin, or a single late renewal would end the
    /// command. The grace is part of the longest hold, and takes at most a third of it.
    pub(crate) fn fit(self, ttl: Duration, max_hold: Option<Duration>) -> Result<Policy, Failure> {
        let of_ttl = (ttl / 3).saturating_sub(margin(ttl));
        let most = max_hold.map_or(of_ttl, |limit| of_ttl.min(limit / 3));
        match self {
            Self::Kill => Ok(Policy { grace: Duration::ZERO, ignore: false }),
            Self::Ignore => Ok(Policy { grace: GRACE, ignore: true }),
            Self::Term(None) => Ok(Policy { grace: GRACE.min(most), ignore: false }),
            Self::Term(Some(grace)) if grace <= most => Ok(Policy { grace, ignore: false }),
            Self::Term(Some(grace)) => Err(Failure::new(
                Code::Usage,
                match max_hold {
                    Some(limit) if grace > limit / 3 && grace <= of_ttl => {
                        too_short_a_hold(limit, grace, most)
                    }
                    _ => too_short(ttl, grace, most, max_hold.filter(|limit| grace > *limit / 3)),
                },
            )),
        }
    }
}

fn text(duration: Duration) -> String {
    shown(duration).to_string()
}

/// A duration in the form of an option.
fn word(duration: Duration) -> String {
    // `text` shows no more than milliseconds.
    let exact = match duration.subsec_nanos() % 1_000_000 {
        0 => text(duration),
        _ => format!("{duration:?}"),
    };
    exact.replace(' ', "")
}

fn policy(grace: Duration) -> String {
    let grace = Duration::from_millis(u64::try_from(grace.as_millis()).unwrap_or(u64::MAX));
    format!("--on-lost term:{}", word(grace))
}

fn too_short_a_hold(limit: Duration, grace: Duration, most: Duration) -> String {
    let enough = grace.saturating_mul(3);
    format!(
        "--max-hold {} is too short for a grace of {}, which is part of it: three times the grace are {}; \
         --max-hold {} would do, or {}",
        word(limit),
        text(grace),
        text(enough),
        word(enough),
        policy(most)
    )
}

fn too_short(ttl: Duration, grace: Duration, most: Duration, hold: Option<Duration>) -> String {
    let and = hold.map(|_| format!(" and --max-hold {}", word(grace.saturating_mul(3))));
    // A third of the TTL less a margin of a twentieth is 17/60 of the TTL. The least margin is
    // 50ms.
    let by_a_twentieth = grace.saturating_mul(60) / 17;
    let by_the_least = grace.saturating_add(margin(Duration::ZERO)).saturating_mul(3);
    let enough = by_a_twentieth.max(by_the_least).as_secs().saturating_add(1);
    let enough = Duration::from_secs(enough);
    format!(
        "a TTL of {} is too short for a grace of {}: three times the grace and the margin of {} are {}; \
         --ttl {}{} would do, or {}",
        text(ttl),
        text(grace),
        text(margin(ttl)),
        text(grace.saturating_add(margin(ttl)).saturating_mul(3)),
        word(enough),
        and.unwrap_or_default(),
        policy(most)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_default_grace_fits_every_ttl() {
        for ttl in [2, 15, 18, 60] {
            let policy = OnLost::Term(None).fit(ttl * SECOND, None).unwrap();
            assert!(ttl * SECOND >= 3 * (policy.grace + margin(ttl * SECOND)), "{ttl}");
        }
        assert_eq!(OnLost::Term(None).fit(60 * SECOND, None).unwrap().grace, 5 * SECOND);
    }

    #[test]
    fn the_suggested_options_are_accepted() {
        for (grace, short) in [
            (Duration::from_nanos(1), Duration::from_millis(100)),
            (SECOND / 3, SECOND),
            (SECOND, 3 * SECOND),
            (5 * SECOND, 15 * SECOND),
            (600 * SECOND, 1800 * SECOND),
        ] {
            let asked = OnLost::Term(Some(grace));
            let error = format!("{:?}", asked.fit(short, None).unwrap_err());
            let (_, rest) = error.split_once("--ttl ").unwrap();
            let (ttl, rest) = rest.split_once(" would").unwrap();
            asked.fit(duration::parse(ttl).unwrap(), None).unwrap();
            let policy = rest.split_once("--on-lost ").unwrap().1.split('"').next().unwrap();
            policy.parse::<OnLost>().unwrap().fit(short, None).unwrap();
        }
    }

    #[test]
    fn no_duration_is_too_long_to_be_refused() {
        let longest = Duration::MAX;
        assert!(OnLost::Term(Some(longest)).fit(15 * SECOND, None).is_err());
        assert!(OnLost::Term(Some(longest)).fit(longest, None).is_err());
        assert!(OnLost::Term(None).fit(longest, None).is_ok());
    }

    #[test]
    fn the_grace_is_at_most_a_third_of_the_longest_hold() {
        let fit = |policy: OnLost, limit| policy.fit(60 * SECOND, Some(limit));
        assert_eq!(fit(OnLost::Term(None), 3 * SECOND).unwrap().grace, SECOND);
        assert_eq!(fit(OnLost::Term(None), 60 * SECOND).unwrap().grace, 5 * SECOND);
        let two = OnLost::Term(Some(2 * SECOND));
        assert_eq!(fit(two, 6 * SECOND).unwrap().grace, 2 * SECOND);
        let error = format!("{:?}", fit(two, 5 * SECOND).unwrap_err());
        assert!(error.contains("--max-hold 6s would do, or --on-lost term:1.666s"), "{error}");
        let ten = OnLost::Term(Some(10 * SECOND));
        let error = format!("{:?}", ten.fit(15 * SECOND, Some(20 * SECOND)).unwrap_err());
        assert!(error.contains("--ttl 36s and --max-hold 30s would do"), "{error}");
        ten.fit(36 * SECOND, Some(30 * SECOND)).unwrap();
    }

    #[test]
    fn unknown_words_are_refused() {
        for text in ["", "term:", "term:5", "stop", "kill:5s"] {
            assert!(text.parse::<OnLost>().is_err(), "{text}");
        }
    }
}
