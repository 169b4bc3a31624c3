//! How durations are shown to people, and read.

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

/// The form that [`parse`] reads, for errors.
pub const FORM: &str = "expected a number with d, h, m, s or ms, as in 15s or 1m30s";

/// Reads a duration: numbers with their units, `d`, `h`, `m`, `s`, `ms`, `us` (or `µs`) or `ns`,
/// such as `15s`, `1.5s` and `1m30s`. A blank may stand between two of them, so that what [`shown`]
/// writes can be read. `None` for any other text. URLs, configurations and options of the program
/// have this form.
///
/// ```
/// use std::time::Duration;
///
/// assert_eq!(lock_core::duration::parse("15s"), Some(Duration::from_secs(15)));
/// assert_eq!(lock_core::duration::parse("1m 30.5s"), Some(Duration::from_millis(90_500)));
/// assert_eq!(lock_core::duration::parse("15"), None);
/// ```
pub fn parse(text: &str) -> Option<Duration> {
    let (mut sum, mut rest) = (Duration::ZERO, text);
    loop {
        let (number, after) = rest.split_at(rest.find(|c: char| c.is_alphabetic())?);
        let end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        sum = sum.checked_add(part(number, unit)?)?;
        match after {
            "" => return Some(sum),
            after => rest = after.strip_prefix(' ').unwrap_or(after),
        }
    }
}

/// A number of one unit.
fn part(number: &str, unit: &str) -> Option<Duration> {
    let unit: u128 = match unit {
        "d" => 86_400_000_000_000,
        "h" => 3_600_000_000_000,
        "m" => 60_000_000_000,
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" | "µs" => 1_000,
        "ns" => 1,
        _ => return None,
    };
    let digits = |text: &str| {
        let plain = text.bytes().all(|digit| digit.is_ascii_digit());
        text.parse::<u64>().ok().filter(|_| plain).map(u128::from)
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    // More digits than a nanosecond has are of no use.
    let power = u32::try_from(fraction.len()).ok().filter(|digits| *digits <= 9)?;
    let nanos = digits(whole)? * unit + digits(fraction)? * unit / 10_u128.pow(power);
    let seconds = u64::try_from(nanos / 1_000_000_000).ok()?;
    Some(Duration::new(seconds, (nanos % 1_000_000_000) as u32))
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
        None => Err(serde::de::Error::custom(format!("{text:?} is no duration: {FORM}"))),
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
    fn what_is_shown_is_read_back() {
        for millis in [0, 1, 250, 1_000, 4_120, 60_000, 90_500, 3_660_050, 129_600_000] {
            let duration = Duration::from_millis(millis);
            let text = shown(duration).to_string();
            assert_eq!(parse(&text), Some(duration), "{text}");
            assert_eq!(parse(&text.replace(' ', "")), Some(duration), "{text}");
        }
        for exact in [Duration::MAX, Duration::from_nanos(1), Duration::from_nanos(1_666_666_667)] {
            assert_eq!(parse(&format!("{exact:?}")), Some(exact));
        }
        assert_eq!(
            parse(&shown(Duration::from_nanos(1_500)).to_string()).unwrap().as_nanos(),
            1_500
        );
    }

    #[test]
    fn anything_else_is_no_duration() {
        for text in [
            "",
            " ",
            "15",
            "s",
            "1m 30",
            "1 m",
            "1m  30s",
            "15s ",
            " 15s",
            "-1s",
            "+1s",
            "1.s",
            ".5s",
            "1,5s",
            "1e3s",
            "15sec",
            "1.0000000001s",
            "99999999999999999999s",
            "1s,",
            "18446744073709551615d",
        ] {
            assert_eq!(parse(text), None, "{text:?}");
        }
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
