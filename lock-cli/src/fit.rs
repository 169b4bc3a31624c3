//! Fits text to a terminal.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Cuts a line to this many columns. A cut line ends with an ellipsis.
pub(crate) fn cut(line: &str, columns: usize) -> String {
    if line.width() <= columns {
        return line.to_owned();
    }
    let Some(mut left) = columns.checked_sub(1) else { return String::new() };
    let fits = line.chars().take_while(|one| {
        let rest = left.checked_sub(one.width().unwrap_or(0));
        left = rest.unwrap_or(left);
        rest.is_some()
    });
    fits.chain(['…']).collect()
}

/// The first lines, each cut. If lines are missing, the last row says how many.
pub(crate) fn screen(mut lines: Vec<String>, columns: usize, rows: usize) -> Vec<String> {
    let missing = match rows.checked_sub(1) {
        Some(shown) if lines.len() > rows => lines.len() - shown,
        _ => 0,
    };
    lines.truncate(if missing > 0 { rows - 1 } else { rows });
    if missing > 0 {
        lines.push(format!("… {missing} more"));
    }
    lines.iter().map(|line| cut(line, columns)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_at_the_edge() {
        for (line, columns, shown) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("名前です", 8, "名前です"),
            ("名前です", 6, "名前…"),
            ("名前です", 4, "名…"),
            ("ab", 1, "…"),
            ("ab", 0, ""),
            ("", 0, ""),
        ] {
            assert_eq!(cut(line, columns), shown);
        }
    }

    #[test]
    fn a_screen_says_how_much_is_below_it() {
        let lines = |n: usize| (1..=n).map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(screen(lines(3), 9, 3), ["1", "2", "3"]);
        assert_eq!(screen(lines(4), 9, 3), ["1", "2", "… 2 more"]);
        assert_eq!(screen(lines(4), 3, 1), ["… …"]);
        assert!(screen(lines(4), 9, 0).is_empty());
    }
}
