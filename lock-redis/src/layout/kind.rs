//! The word by which the server knows a kind.

use std::borrow::Cow;

use lock_core::Kind;

pub(crate) const EXCLUSIVE: &str = "x";
pub(crate) const SHARED: &str = "s";

/// [`EXCLUSIVE`], [`SHARED`], or `p<weight>/<limit>`.
pub(crate) fn word(kind: Kind) -> Cow<'static, str> {
    match kind {
        Kind::Shared => SHARED.into(),
        Kind::Permit { weight, limit } => format!("p{weight}/{limit}").into(),
        // Exclusive. lock-core asks for no kind that this driver does not promise.
        _ => EXCLUSIVE.into(),
    }
}

/// Returns the kind of a word. A candidate's word, or an unknown one, counts as exclusive.
pub(crate) fn parse(word: &str) -> Kind {
    let permit = || {
        let (weight, limit) = word.strip_prefix('p')?.split_once('/')?;
        Some(Kind::Permit { weight: weight.parse().ok()?, limit: limit.parse().ok()? })
    };
    match word {
        SHARED => Kind::Shared,
        _ => permit().unwrap_or_default(),
    }
}

/// Returns the word of an exclusive attempt with a value. In its record the value follows the
/// description.
pub(crate) fn candidate(database: i64, who: &str) -> String {
    format!("e{database}/{}", who.len())
}

/// Returns an attempt's description, from the end of its record.
pub(crate) fn description<'a>(word: &str, end: &'a str) -> &'a str {
    let length = || word.strip_prefix('e')?.split_once('/')?.1.parse().ok();
    length().and_then(|length| end.get(..length)).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_candidate_is_exclusive_and_its_value_is_not_in_its_description() {
        let word = candidate(7, "the ñight");
        assert_eq!(parse(&word), Kind::Exclusive);
        assert_eq!(description(&word, "the ñight shift"), "the ñight");
        assert_eq!(description("x", "the night shift"), "the night shift");
    }

    #[test]
    fn words_are_read_as_they_are_written() {
        for kind in [Kind::Exclusive, Kind::Shared, Kind::Permit { weight: 2, limit: u32::MAX }] {
            assert_eq!(parse(&word(kind)), kind);
        }
        for odd in ["", "p", "p1", "p1/", "p1/x", "the night shift"] {
            assert_eq!(parse(odd), Kind::Exclusive, "{odd}");
        }
    }
}
