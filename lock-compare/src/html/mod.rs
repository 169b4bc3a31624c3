//! The report as one self-contained HTML page.

mod advice;
mod evidence;
mod glossary;
mod head;
mod lists;
mod matrix;
mod page;
mod plots;
mod words;

pub(crate) use self::matrix::id;

use crate::Report;

/// Largest size of a page in bytes. Larger pages are made again with less detail.
const LIMIT: usize = 1_900_000;

/// The detail of the drawn evidence.
#[derive(Clone, Copy, Debug)]
struct Detail {
    /// Number of rows shown of a drawing's data.
    rows: usize,
    /// The sides with drawn timelines.
    sides: Sides,
}

/// The sides of an experiment that are drawn.
#[derive(Clone, Copy, Debug)]
enum Sides {
    All,
    /// The side that the claim is about, and distlock.
    Main,
    None,
}

const DETAILS: [Detail; 4] = [
    Detail { rows: 60, sides: Sides::All },
    Detail { rows: 24, sides: Sides::All },
    Detail { rows: 12, sides: Sides::Main },
    Detail { rows: 8, sides: Sides::None },
];

/// Returns the report as one HTML page, with its style, script and drawings in it. It loads
/// nothing, runs only its own script, and can be read without it. It is smaller than 2 MB: a larger
/// report has fewer timelines and fewer rows of data.
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
