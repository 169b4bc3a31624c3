//! What to know before one believes a lock benchmark, for the page and for Markdown.

use maud::{Markup, html};

/// A name and its meaning in each paragraph.
const POINTS: &str = include_str!("belief.md");

fn all() -> impl Iterator<Item = (&'static str, String)> {
    let points = POINTS.split("\n\n").filter_map(|point| point.split_once(": "));
    points.map(|(name, meaning)| (name, meaning.split_whitespace().collect::<Vec<_>>().join(" ")))
}

pub(super) fn points() -> Markup {
    html! { dl.facts { @for (name, meaning) in all() { dt { (name) } dd { (meaning) } } } }
}

/// The same as a list in Markdown.
pub(crate) fn beliefs() -> String {
    let points = all().map(|(name, meaning)| format!("- **{name}:** {meaning}"));
    points.collect::<Vec<_>>().join("\n")
}
