//! Foreign text, made safe for a terminal.

use std::fmt::{self, Display, Write};

/// One line of text. Characters that would move the cursor, end the line or turn the direction of
/// writing are shown as escapes such as `\u{1b}`.
///
/// Each user of a store may put any text into it, as a name or as a holder's description. Such text
/// must not forge a row or take over the reader's terminal.
pub(crate) struct Plain<T>(pub(crate) T);

impl<T: Display> Display for Plain<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(Escaping(f), "{}", self.0)
    }
}

struct Escaping<W>(W);

impl<W: Write> Write for Escaping<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.chars().try_for_each(|one| match acts(one) {
            true => write!(self.0, "{}", one.escape_default()),
            false => self.0.write_char(one),
        })
    }
}

/// Whether a character acts on the terminal instead of being shown.
fn acts(one: char) -> bool {
    let turns = matches!(one, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let ends_a_line = matches!(one, '\u{2028}' | '\u{2029}');
    one.is_control() || turns || ends_a_line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_acting_characters_are_escaped() {
        for (text, shown) in [
            ("Zoë's 名前 \\ \"x\" 👩‍💻", "Zoë's 名前 \\ \"x\" 👩‍💻"),
            ("a\nb\rc\td", "a\\nb\\rc\\td"),
            ("\x1b]0;title\x07", "\\u{1b}]0;title\\u{7}"),
            ("\u{9b}2J\x7f", "\\u{9b}2J\\u{7f}"),
            ("\u{202e}gpj.exe\u{2028}", "\\u{202e}gpj.exe\\u{2028}"),
        ] {
            assert_eq!(Plain(text).to_string(), shown);
        }
    }
}
