//! Numbers as texts.

/// Formats a number with about three significant digits.
pub fn number(value: f64) -> String {
    let digits = match value.abs() {
        0.0 => return "0".into(),
        size if !size.is_finite() => return "–".into(),
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        0.1.. => 3,
        0.01.. => 4,
        _ => 6,
    };
    let text = format!("{value:.digits$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

/// Formats a time of a timeline, given in milliseconds.
pub(crate) fn time(ms: f64) -> String {
    match ms {
        1000.0.. => format!("{ms:.1} ms"),
        100.0.. => format!("{ms:.0} ms"),
        10.0.. => format!("{ms:.1} ms"),
        _ => format!("{ms:.2} ms"),
    }
}

/// Formats a coordinate of a drawing. Tenths are enough.
pub(crate) fn at(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_have_three_significant_digits() {
        let numbers = [0.0, 1234.5, 99.96, 2.5, 1.0, 0.1234, -2.7149, f64::NAN];
        let texts = ["0", "1234", "100", "2.5", "1", "0.123", "-2.71", "–"];
        for (value, text) in numbers.into_iter().zip(texts) {
            assert_eq!(number(value), text, "{value}");
        }
    }
}
