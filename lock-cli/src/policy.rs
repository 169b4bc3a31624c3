//! What happens to a command when its lock is about to be lost.

use std::{str::FromStr, time::Duration};

use lock_core::deadline::margin;
use serde::{Deserialize, Serialize};

use crate::exit::{Code, Failure};

/// The longest grace that nobody asked for.
const GRACE: Duration = Duration::from_secs(5);

/// What the user asked for.
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
            Some(("term", grace)) => humantime::parse_duration(grace)
                .map(|grace| Self::Term(Some(grace)))
                .map_err(|error| format!("the grace: {error}")),
            _ => Err("expected term, term:GRACE (as in term:5s), kill or ignore".to_owned()),
        }
    }
}

/// What the supervisor does.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Policy {
    /// From SIGTERM to SIGKILL.
    pub(crate) grace: Duration,
    /// Whether the command may outlive the lock.
    pub(crate) ignore: bool,
}

impl OnLost {
    /// Fits it to a TTL. Renewals come every third of a TTL; what they leave must be enough for the
    /// grace and the margin, or a single late one would end the command.
    ///
    /// # Errors
    ///
    /// If the TTL is below three times the grace and the margin.
    pub(crate) fn fit(self, ttl: Duration) -> Result<Policy, Failure> {
        let most = (ttl / 3).saturating_sub(margin(ttl));
        match self {
            Self::Kill => Ok(Policy { grace: Duration::ZERO, ignore: false }),
            Self::Ignore => Ok(Policy { grace: GRACE, ignore: true }),
            Self::Term(None) => Ok(Policy { grace: GRACE.min(most), ignore: false }),
            Self::Term(Some(grace)) if grace <= most => Ok(Policy { grace, ignore: false }),
            Self::Term(Some(grace)) => Err(Failure::new(Code::Usage, too_short(ttl, grace, most))),
        }
    }
}

fn too_short(ttl: Duration, grace: Duration, most: Duration) -> String {
    let text = |duration| humantime::format_duration(duration).to_string();
    let fits = |ttl: &Duration| (*ttl / 3).saturating_sub(margin(*ttl)) >= grace;
    // The margin grows with the TTL, to at most a twentieth of it: 3 graces are too few, 5 enough.
    let enough = (1..).map(|tenth| grace * 3 + grace * tenth / 10).find(fits).unwrap_or(grace * 5);
    let enough = Duration::from_secs(enough.as_secs() + 1);
    format!(
        "a TTL of {} is too short for a grace of {}: three times the grace and the margin of {} are {}; \
         --ttl {} would do, or --on-lost term:{}",
        text(ttl),
        text(grace),
        text(margin(ttl)),
        text((grace + margin(ttl)) * 3),
        text(enough),
        text(Duration::from_millis(u64::try_from(most.as_millis()).unwrap_or(u64::MAX)))
            .replace(' ', "")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_default_grace_fits_every_ttl() {
        for ttl in [2, 15, 18, 60] {
            let policy = OnLost::Term(None).fit(ttl * SECOND).unwrap();
            assert!(ttl * SECOND >= 3 * (policy.grace + margin(ttl * SECOND)), "{ttl}");
        }
        assert_eq!(OnLost::Term(None).fit(60 * SECOND).unwrap().grace, 5 * SECOND);
    }

    #[test]
    fn what_would_do_does() {
        for grace in [1, 5, 30, 600] {
            let asked = OnLost::Term(Some(grace * SECOND));
            let error = format!("{:?}", asked.fit(grace * SECOND * 3).unwrap_err());
            let (_, rest) = error.split_once("--ttl ").unwrap();
            let (ttl, rest) = rest.split_once(" would").unwrap();
            asked.fit(humantime::parse_duration(ttl).unwrap()).unwrap();
            let policy = rest.split_once("--on-lost ").unwrap().1.split('"').next().unwrap();
            policy.parse::<OnLost>().unwrap().fit(grace * SECOND * 3).unwrap();
        }
    }

    #[test]
    fn words_that_are_none_are_refused() {
        for text in ["", "term:", "term:5", "stop", "kill:5s"] {
            assert!(text.parse::<OnLost>().is_err(), "{text}");
        }
    }
}
