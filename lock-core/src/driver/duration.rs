//! How durations are shown to people.

use std::{fmt, time::Duration};

/// A duration for people, to the millisecond: `250ms`, `4.1s`, `15s`, `1m 30s`, `2h`, `1d 12h`. All
/// texts of distlock show durations in this form.
///
/// ```
/// # mod distlock { pub use lock_core as driver; }
/// use std::time::Duration;
///
/// let shown = distlock::driver::duration::shown(Duration::from_millis(90_500));
/// assert_eq!(shown.to_string(), "1m 30.5s");
/// ```
pub fn shown(duration: Duration) -> impl fmt::Display {
    Shown(duration)
}

/// A measured duration for people: like [`shown`], but to a tenth of a second from one second on.
pub fn about(duration: Duration) -> impl fmt::Display {
    let tenths = u64::try_from(duration.as_millis() / 100).unwrap_or(u64::MAX);
    match duration.as_secs() {
        0 => Shown(duration),
        seconds => Shown(Duration::new(seconds, (tenths % 10) as u32 * 100_000_000)),
    }
}

/// Reads a duration as a URL and a configuration write it: a whole number and `ms`, `s`, `m` or
/// `h`. `None` for any other text.
///
/// ```
/// use std::time::Duration;
///
/// assert_eq!(lock_core::duration::parse("15s"), Some(Duration::from_secs(15)));
/// assert_eq!(lock_core::duration::parse("15"), None);
/// ```
pub fn parse(text: &str) -> Option<Duration> {
    let unit = text.find(|c: char| !c.is_ascii_digit())?;
    let number: u64 = text[..unit].parse().ok()?;
    let seconds = |factor: u64| number.checked_mul(factor).map(Duration::from_secs);
    match &text[unit..] {
        "ms" => Some(Duration::from_millis(number)),
        "s" => seconds(1),
        "m" => seconds(60),
        "h" => seconds(3600),
        _ => None,
    }
}

/// Like [`parse`], for a field of a configuration that may be missing, by
/// `#[serde(default, deserialize_with = "lock_core::duration::deserialize")]`.
///
/// # Errors
///
/// For a text that is not a duration above zero.
#[cfg(feature = "serde")]
pub fn deserialize<'de, D: serde::Deserializer<'de>>(
    from: D,
) -> Result<Option<Duration>, D::Error> {
    let text = <std::borrow::Cow<'_, str> as serde::Deserialize>::deserialize(from)?;
    match parse(&text).filter(|duration| !duration.is_zero()) {
        Some(duration) => Ok(Some(duration)),
        None => Err(serde::de::Error::custom(format!(
            "{text:?} is no duration: expected a number with ms, s, m or h, as in 15s"
        ))),
    }
}

struct Shown(Duration);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.0.as_secs(), self.0.subsec_millis());
        match (seconds, millis) {
            (0, 0) if self.0.is_zero() => return f.write_str("0s"),
            (0, 0) => return fmt::Debug::fmt(&self.0, f),
            (0, _) => return write!(f, "{millis}ms"),
            _ => {}
        }
        let units =
            [(seconds / 86_400, "d"), (seconds / 3_600 % 24, "h"), (seconds / 60 % 60, "m")];
        let mut words: Vec<_> = units
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, unit)| format!("{number}{unit}"))
            .collect();
        match (seconds % 60, millis) {
            (0, 0) => {}
            (seconds, 0) => words.push(format!("{seconds}s")),
            (seconds, millis) => {
                let fraction = format!("{millis:03}");
                words.push(format!("{seconds}.{}s", fraction.trim_end_matches('0')));
            }
        }
        f.write_str(&words.join(" "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_has_one_form() {
        for (millis, text) in [
            (0, "0s"),
            (1, "1ms"),
            (250, "250ms"),
            (1_000, "1s"),
            (4_120, "4.12s"),
            (60_000, "1m"),
            (90_500, "1m 30.5s"),
            (3_600_000, "1h"),
            (3_660_050, "1h 1m 0.05s"),
            (129_600_000, "1d 12h"),
        ] {
            assert_eq!(shown(Duration::from_millis(millis)).to_string(), text);
        }
        assert_eq!(shown(Duration::from_micros(20)).to_string(), "20µs");
        assert!(shown(Duration::MAX).to_string().contains('d'));
    }

    #[test]
    fn measured_durations_are_rounded_down() {
        for (millis, text) in
            [(250, "250ms"), (4_199, "4.1s"), (15_020, "15s"), (90_590, "1m 30.5s")]
        {
            assert_eq!(about(Duration::from_millis(millis)).to_string(), text);
        }
    }
}
