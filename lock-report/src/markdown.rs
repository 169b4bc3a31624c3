//! Tables and texts of pages in Markdown.

/// A table with a heading.
pub fn table(heading: &[impl AsRef<str>], rows: impl Iterator<Item = Vec<String>>) -> String {
    let heading: Vec<_> = heading.iter().map(AsRef::as_ref).collect();
    let rule = vec!["---"; heading.len()].join("|");
    let rows = rows.map(|row| format!("| {} |", row.join(" | ")));
    let lines =
        [format!("| {} |", heading.join(" | ")), format!("|{rule}|")].into_iter().chain(rows);
    lines.collect::<Vec<_>>().join("\n")
}

/// Escapes Markdown for a cell of a table. Code in backticks stays code.
pub fn plain(text: &str) -> String {
    let mut plain = String::new();
    for one in text.chars() {
        match one {
            '\n' | '\r' | '\t' => plain.push(' '),
            '<' => plain += "&lt;",
            '>' => plain += "&gt;",
            '|' | '*' | '[' | ']' => plain.extend(['\\', one]),
            other => plain.push(other),
        }
    }
    plain
}
