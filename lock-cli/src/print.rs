//! Output to stdout.

use std::{
    fmt::Display,
    io::{self, IsTerminal, Write},
    time::{Duration, SystemTime},
};

use comfy_table::{ColumnConstraint, ContentArrangement, Table, presets};
use distlock::Entry;
use lock_core::{duration::about, wall_clock};
use serde::Serialize;

use crate::{escape::Plain, exit::say};

/// Prints one JSON value on a line of its own.
pub(crate) fn json(value: &impl Serialize) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, value)?;
    writeln!(out)?;
    out.flush()
}

/// Prints text of the program's own, unchanged.
pub(crate) fn bytes(text: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text)?;
    out.flush()
}

/// Prints a line, with foreign text made [plain](Plain).
pub(crate) fn line(text: impl Display) -> io::Result<()> {
    lines([text])
}

/// Same as [`line`], for several lines.
pub(crate) fn lines(lines: impl IntoIterator<Item = impl Display>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    lines.into_iter().try_for_each(|line| writeln!(out, "{}", Plain(line)))?;
    out.flush()
}

/// Prints a line for people above the rows of a list. If a program reads the rows, it goes to stderr.
pub(crate) fn heading(text: impl Display) -> io::Result<()> {
    match io::stdout().is_terminal() {
        true => line(text),
        false => {
            say(text);
            Ok(())
        }
    }
}

/// Prints columns under headings, without ruled lines.
pub(crate) fn table(
    headings: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> io::Result<()> {
    lines(table_lines(headings, rows))
}

/// The lines of such a table.
pub(crate) fn table_lines(
    headings: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> Vec<String> {
    let headings: Vec<_> = headings.iter().map(|text| text.to_uppercase()).collect();
    columns(&headings, rows).trim_fmt().lines().map(str::to_owned).collect()
}

/// Prints such a table with the headings unchanged. Breaks lines where a terminal is too narrow;
/// the first column stays whole.
pub(crate) fn fitted(
    headings: &[impl ToString],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> io::Result<()> {
    let mut table = columns(headings, rows);
    if let Some((width, _)) = terminal_size::terminal_size_of(io::stdout()) {
        table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width.0);
        if let Some(first) = table.column_mut(0) {
            first.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    lines(table.trim_fmt().lines())
}

fn columns(headings: &[impl ToString], rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(headings.iter().map(ToString::to_string));
    table.add_rows(rows.into_iter().map(|row| row.into_iter().map(|cell| Plain(cell).to_string())));
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

/// The time since a point in time.
pub(crate) fn age(since: SystemTime) -> String {
    let age = wall_clock().duration_since(since).unwrap_or_default();
    seconds(age)
}

/// A duration that was measured.
pub(crate) fn seconds(duration: Duration) -> String {
    about(duration).to_string()
}

/// A point in time, for programs.
pub(crate) fn time(time: SystemTime) -> String {
    humantime::format_rfc3339_millis(time).to_string()
}

/// The client's description for people.
pub(crate) fn who(entry: &Entry) -> &str {
    entry.holder.description.as_deref().unwrap_or("a foreign client")
}

/// The time since the grant. If the store cannot tell: `queued .. ago`, the time since
/// the holder joined the queue.
pub(crate) fn held_for(entry: &Entry) -> String {
    match (entry.holder.granted_at, entry.holder.queued_at) {
        (Some(granted), _) => age(granted),
        (None, Some(queued)) => format!("queued {} ago", age(queued)),
        (None, None) => String::new(),
    }
}
