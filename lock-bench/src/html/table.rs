//! Tables of texts, for the page and for Markdown.

use lock_report::markdown;
use maud::{Markup, html};

use crate::{
    Row, Section,
    columns::{Column, OUTAGE},
};

/// A heading with its rows.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) heading: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(super) fn of<'a>(columns: &[Column], rows: impl IntoIterator<Item = &'a Row>) -> Self {
        let cells = |row: &'a Row| columns.iter().map(|(_, cell)| cell(row)).collect::<Vec<_>>();
        Self {
            heading: columns.iter().map(|(heading, _)| *heading).collect(),
            rows: rows.into_iter().map(cells).collect(),
        }
    }

    pub(crate) fn markdown(&self) -> String {
        let plain = |row: &Vec<String>| row.iter().map(|text| markdown::plain(text)).collect();
        markdown::table(&self.heading, self.rows.iter().map(plain))
    }

    /// The table in a box that scrolls.
    pub(super) fn html(&self, label: &str) -> Markup {
        html! {
            div.scroll tabindex="0" role="group" aria-label=(label) {
                table.plain {
                    thead { tr { @for name in &self.heading { th scope="col" { (name) } } } }
                    tbody { @for row in &self.rows { (line(row)) } }
                }
            }
        }
    }
}

fn line(row: &[String]) -> Markup {
    html! {
        tr {
            @for (column, text) in row.iter().enumerate() {
                @if column == 0 { th scope="row" { (text) } } @else { td { (text) } }
            }
        }
    }
}

/// A preset with these figures of its rows, unless it has a time alone.
pub(crate) fn figures(section: &Section, columns: &[Column]) -> Table {
    Table::of(if section.is_outage() { &OUTAGE } else { columns }, &section.rows)
}
