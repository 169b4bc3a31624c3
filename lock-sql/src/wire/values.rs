//! The values in a script, apart from the statements, which a database plans once.
//!
//! Only bytes and numbers are written into scripts, so both are found again by their form.

/// Most values of what is planned once. What has more is a list of conditions or rows, and each
/// length of it would be a plan of its own.
pub(super) const MOST: usize = 64;

/// Splits a script at its values: each with the text before it, and then the text after the last
/// one. The number of a `LIMIT` is no value: it tells the planner how few rows are read.
pub(super) fn split(script: &str) -> (Vec<(&str, &str)>, &str) {
    let (mut parts, mut rest, mut at) = (Vec::new(), script, 0);
    while at < rest.len() {
        let (before, end) = (&rest[..at], at + length(&rest[at..]));
        let token = &rest[at..end];
        let is_number = token.parse::<i64>().is_ok() && !before.ends_with("LIMIT ");
        if is_number || token.starts_with("x'") || token.starts_with("E'") {
            parts.push((before, token));
            (rest, at) = (&rest[end..], 0);
        } else {
            at = end;
        }
    }
    (parts, rest)
}

/// The length of the first token: a word or a number, a text in quotes with what belongs to it, or
/// another character.
fn length(text: &str) -> usize {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let word = text.find(|c: char| !is_word(c)).unwrap_or(text.len());
    match text[word..].strip_prefix('\'').and_then(|quoted| quoted.split_once('\'')) {
        Some((_, after)) => text.len() - after.strip_prefix("::bytea").unwrap_or(after).len(),
        None => word.max(text.chars().next().map_or(1, char::len_utf8)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_and_numbers_are_found_in_both_dialects() {
        for bytes in ["x'0aff'", r"E'\\x0aff'::bytea"] {
            let script =
                format!("SELECT v1, 'a 1;' FROM t_2 WHERE a={bytes} AND b <= -3 + 40 LIMIT 5");
            let found = [
                ("SELECT v1, 'a 1;' FROM t_2 WHERE a=", bytes),
                (" AND b <= -", "3"),
                (" + ", "40"),
            ];
            assert_eq!(split(&script), (found.to_vec(), " LIMIT 5"));
        }
    }

    #[test]
    fn what_is_no_value_stays() {
        for text in ["", "99999999999999999999", "'x' a1 (b)", "an open 'text", "ü-"] {
            assert_eq!(split(text), (Vec::new(), text));
        }
    }
}
