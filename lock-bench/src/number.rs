//! Numbers for people.

/// A number with three digits that count, and at most six characters: `0.0812`, `1.23`, `12.3`,
/// `1,234`, `99,999`, `123k`, `1.23M`.
pub(crate) fn shown(value: f64) -> String {
    match value {
        0.0 => "0".into(),
        _ if value < 0.0995 => format!("{value:.4}"),
        _ if value < 0.9995 => format!("{value:.3}"),
        _ if value < 9.995 => format!("{value:.2}"),
        _ if value < 99.95 => format!("{value:.1}"),
        _ if value < 999.5 => format!("{value:.0}"),
        _ if value < 99_999.5 => {
            let whole = value.round();
            format!("{},{:03}", (whole / 1e3).floor(), whole % 1e3)
        }
        _ if value < 999_500.0 => format!("{:.0}k", value / 1e3),
        _ => format!("{:.2}M", value / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_count() {
        for (value, text) in [
            (0.0, "0"),
            (0.0012, "0.0012"),
            (0.0812, "0.0812"),
            (0.5, "0.500"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (99.97, "100"),
            (999.6, "1,000"),
            (12_007.4, "12,007"),
            (123_456.0, "123k"),
            (1_234_567.0, "1.23M"),
        ] {
            assert_eq!(shown(value), text);
        }
    }
}
