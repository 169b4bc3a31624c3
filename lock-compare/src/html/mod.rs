//! The report as one page of HTML that needs nothing else.

mod advice;
mod evidence;
mod front;
mod glossary;
mod head;
mod lists;
mod matrix;
mod page;
mod plots;
mod security;
mod words;

pub(crate) use self::words::number;

use crate::Report;

/// A page is made smaller until it has at most so many bytes.
const LIMIT: usize = 1_900_000;

/// How much of the evidence is drawn.
#[derive(Clone, Copy, Debug)]
struct Detail {
    /// How many rows of a drawing's data are shown.
    rows: usize,
    /// Whose timelines are drawn.
    sides: Sides,
}

/// Which sides of an experiment are drawn.
#[derive(Clone, Copy, Debug)]
enum Sides {
    All,
    /// The one that the claim is about, and distlock.
    Main,
    None,
}

const DETAILS: [Detail; 4] = [
    Detail { rows: 60, sides: Sides::All },
    Detail { rows: 24, sides: Sides::All },
    Detail { rows: 12, sides: Sides::Main },
    Detail { rows: 8, sides: Sides::None },
];

/// The report as one HTML page, with its style, script and drawings in it. It loads nothing, runs
/// no other script than its own, and can be read without that one. It has less than 2 MB: the more
/// there is in the report, the fewer timelines and rows of data are drawn.
pub fn html(report: &Report) -> String {
    let mut page = String::new();
    for detail in DETAILS {
        page = page::page(report, detail).into_string();
        if page.len() <= LIMIT {
            break;
        }
    }
    page
}

#[cfg(test)]
mod tests;
