//! Values of the options of `bench`.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use lock_bench::{Kind, Preset};

use crate::values::duration;

/// All presets.
pub(crate) const ALL: &str = "all";

/// What a sweep changes, and the greatest count.
const SWEPT: [(&str, u32); 4] =
    [("names", 100_000), ("workers", 1000), ("processes", 64), ("held", 100_000)];
const TTL: &str = "ttl";
const SHORTEST_TTL: f64 = 0.001;
const LONGEST_TTL: f64 = 86_400.0;

const MOST_PER_SECOND: f64 = 1e6;
const LONGEST_ROUND: f64 = 3600.0;
const SHORTEST_ROUND: f64 = 0.01;

/// The values of `--preset`.
pub(crate) fn presets() -> impl TypedValueParser<Value = String> {
    let named = Preset::ALL.map(|one| PossibleValue::new(one.name()).help(one.models()));
    let all = PossibleValue::new(ALL).help("All of them");
    PossibleValuesParser::new(named.into_iter().chain([all]))
}

/// The values of `--kind`.
pub(crate) fn kinds() -> impl TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(Kind::ALL.map(Kind::name))
        .try_map(|kind| Kind::of_name(&kind).ok_or("unknown kind"))
}

/// Starts per second.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| *rate > 0.0 && *rate <= MOST_PER_SECOND);
    rate.ok_or_else(|| format!("expected a number above 0, and at most {MOST_PER_SECOND}"))
}

/// The length of a round in seconds.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|s| (SHORTEST_ROUND..=LONGEST_ROUND).contains(s));
    seconds.ok_or_else(|| format!("expected a number from {SHORTEST_ROUND} to {LONGEST_ROUND}"))
}

/// `KEY=VALUE,VALUE,..`, with rising values.
pub(crate) fn sweep(text: &str) -> Result<(String, Vec<f64>), String> {
    let form = "expected KEY=VALUE,VALUE,.. as in names=1,10,100";
    let (key, values) = text.split_once('=').ok_or(form)?;
    let read = |value| swept(key, value);
    let values = values.split(',').map(read).collect::<Result<Vec<f64>, String>>()?;
    match values.len() > 1 && values.is_sorted_by(|a, b| a < b) {
        true => Ok((key.to_owned(), values)),
        false => Err("expected at least two values, each greater than the one before it".into()),
    }
}

/// A value of a sweep. A TTL counts in seconds.
fn swept(key: &str, value: &str) -> Result<f64, String> {
    if key == TTL {
        let ttl = duration(value).map_err(|form| format!("{value:?}: {form}"))?.as_secs_f64();
        let fits = Some(ttl).filter(|ttl| (SHORTEST_TTL..=LONGEST_TTL).contains(ttl));
        return fits.ok_or_else(|| format!("{value:?}: expected 1ms to 1d"));
    }
    let Some((_, most)) = SWEPT.into_iter().find(|(known, _)| *known == key) else {
        let known = SWEPT.map(|(known, _)| known).join(", ");
        return Err(format!("unknown key {key:?}; known are {known} and {TTL}"));
    };
    let count = value.parse::<u32>().ok().filter(|count| (1..=most).contains(count));
    count.map(f64::from).ok_or_else(|| format!("{value:?}: expected 1 to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_has_a_key_and_rising_values() {
        assert_eq!(sweep("names=1,10,1000"), Ok(("names".into(), vec![1.0, 10.0, 1000.0])));
        assert!(sweep("held=1,100000").is_ok() && sweep("workers=1,1000").is_ok());
        assert_eq!(sweep("ttl=500ms,1m"), Ok(("ttl".into(), vec![0.5, 60.0])));
        for (wrong, told) in [
            ("names", "KEY=VALUE"),
            ("names=", "1 to 100000"),
            ("names=1", "at least two"),
            ("names=10,1", "greater"),
            ("names=1,1", "greater"),
            ("names=0,1", "\"0\""),
            ("workers=1,1001", "1 to 1000"),
            ("keys=1,2", "known are names, workers, processes, held and ttl"),
            ("ttl=1,2", "15s"),
            ("ttl=0s,1s", "1ms to 1d"),
            ("ttl=1s,2d", "1ms to 1d"),
        ] {
            let error = sweep(wrong).unwrap_err();
            assert!(error.contains(told), "{wrong}: {error}");
        }
    }

    #[test]
    fn rates_and_rounds_are_finite() {
        for wrong in ["0", "-1", "NaN", "inf", "1e7", "x", ""] {
            assert!(rate(wrong).is_err() && seconds(wrong).is_err(), "{wrong}");
        }
        assert_eq!((rate("0.5"), seconds("0.25")), (Ok(0.5), Ok(0.25)));
    }
}
